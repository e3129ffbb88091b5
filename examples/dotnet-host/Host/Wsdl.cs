using System.Text;
using System.Xml;
using System.Xml.Linq;
using System.Xml.Schema;

namespace SoaBroker.Host;

/// <summary>The contract as WSDL 1.1: one port each for SOAP 1.1 and SOAP 1.2, named as WCF names them. All schemas stand in it; a type that has none is refused with StartFailure.</summary>
public sealed class Wsdl(ServiceContract contract)
{
    private readonly ContractSchemas schemas = new(contract);

    private const string Transport = "http://schemas.xmlsoap.org/soap/http";
    private static readonly XNamespace W = "http://schemas.xmlsoap.org/wsdl/";
    private static readonly XNamespace Soap11 = "http://schemas.xmlsoap.org/wsdl/soap/";
    private static readonly XNamespace Soap12 = "http://schemas.xmlsoap.org/wsdl/soap12/";
    private static readonly XNamespace Wsu = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
    private static readonly XNamespace Wsp = "http://schemas.xmlsoap.org/ws/2004/09/policy";
    private static readonly XNamespace Wsaw = "http://www.w3.org/2006/05/addressing/wsdl";
    private static readonly XNamespace Wsa10 = SoapFormat.Addressing;

    private string Policy => $"WSHttpBinding_{contract.Name}_policy";

    /// <summary>The document, indented, with a line end at its end.</summary>
    public string Write(string service, string address)
    {
        var root = new XElement(W + "definitions",
            new XAttribute("name", service), new XAttribute("targetNamespace", contract.Namespace), Prefix("tns", contract.Namespace), Prefix("wsdl", W), Prefix("soap", Soap11), Prefix("soap12", Soap12),
            Prefix("wsu", Wsu), Prefix("wsp", Wsp), Prefix("wsaw", Wsaw), Prefix("wsa10", Wsa10),
            new XElement(Wsp + "Policy", new XAttribute(Wsu + "Id", Policy), new XElement(Wsp + "ExactlyOne", new XElement(Wsp + "All", new XElement(Wsaw + "UsingAddressing")))),
            new XElement(W + "types", schemas.All.Select(Element)),
            contract.Operations.SelectMany(Messages),
            new XElement(W + "portType", new XAttribute("name", contract.Name), contract.Operations.Select(PortTypeOperation)),
            Binding("BasicHttpBinding", Soap11), Binding("WSHttpBinding", Soap12),
            new XElement(W + "service", new XAttribute("name", service), Port("BasicHttpBinding", Soap11, address), Port("WSHttpBinding", Soap12, address)));
        var text = new StringBuilder();
        using (var writer = XmlWriter.Create(text, new XmlWriterSettings { Indent = true, OmitXmlDeclaration = true, NewLineChars = "\n" })) root.Save(writer);
        return $"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{text}\n";
    }

    private static XAttribute Prefix(string prefix, XNamespace ns) => new(XNamespace.Xmlns + prefix, ns.NamespaceName);

    private static XElement Element(XmlSchema schema)
    {
        using var text = new StringWriter();
        schema.Write(text);
        return XElement.Parse(text.ToString());
    }

    private string MessageOf(Operation operation, string way) => $"{contract.Name}_{operation.Name}_{way}";

    private string FaultMessageOf(Operation operation, DeclaredFault fault) => MessageOf(operation, $"{fault.Name}_FaultMessage");

    private IEnumerable<XElement> Messages(Operation operation)
    {
        yield return Message(MessageOf(operation, "InputMessage"), "parameters", Wrapper(operation.Request));
        if (operation.Reply is { } reply) yield return Message(MessageOf(operation, "OutputMessage"), "parameters", Wrapper(reply));
        foreach (var fault in operation.Faults) yield return Message(FaultMessageOf(operation, fault), "detail", schemas.ElementOf(fault));
    }

    private static XmlQualifiedName Wrapper(BodyCodec body) => new(body.Wrapper, body.WrapperNamespace);

    private static XElement Message(string name, string part, XmlQualifiedName element) => new(W + "message", new XAttribute("name", name),
        new XElement(W + "part", new XAttribute("name", part), Prefix("q1", element.Namespace), new XAttribute("element", $"q1:{element.Name}")));

    private XElement PortTypeOperation(Operation operation) => new(W + "operation", new XAttribute("name", operation.Name),
        new XElement(W + "input", new XAttribute(Wsaw + "Action", operation.Action), new XAttribute("message", "tns:" + MessageOf(operation, "InputMessage"))),
        operation.Reply is null ? null : new XElement(W + "output", new XAttribute(Wsaw + "Action", operation.ReplyAction!), new XAttribute("message", "tns:" + MessageOf(operation, "OutputMessage"))),
        operation.Faults.Select(fault => new XElement(W + "fault", new XAttribute(Wsaw + "Action", fault.Action), new XAttribute("name", fault.Name), new XAttribute("message", "tns:" + FaultMessageOf(operation, fault)))));

    private XElement Binding(string kind, XNamespace soap)
    {
        XElement Body() => new(soap + "body", new XAttribute("use", "literal"));
        return new XElement(W + "binding", new XAttribute("name", $"{kind}_{contract.Name}"), new XAttribute("type", $"tns:{contract.Name}"),
            soap == Soap12 ? new XElement(Wsp + "PolicyReference", new XAttribute("URI", "#" + Policy)) : null,
            new XElement(soap + "binding", new XAttribute("transport", Transport)),
            contract.Operations.Select(operation => new XElement(W + "operation", new XAttribute("name", operation.Name),
                new XElement(soap + "operation", new XAttribute("soapAction", operation.Action), new XAttribute("style", "document")),
                new XElement(W + "input", Body()),
                operation.Reply is null ? null : new XElement(W + "output", Body()),
                operation.Faults.Select(fault => new XElement(W + "fault", new XAttribute("name", fault.Name), new XElement(soap + "fault", new XAttribute("name", fault.Name), new XAttribute("use", "literal")))))));
    }

    private XElement Port(string kind, XNamespace soap, string address) => new(W + "port", new XAttribute("name", $"{kind}_{contract.Name}"), new XAttribute("binding", $"tns:{kind}_{contract.Name}"),
        new XElement(soap + "address", new XAttribute("location", address)),
        soap == Soap12 ? new XElement(Wsa10 + "EndpointReference", new XElement(Wsa10 + "Address", address)) : null);
}
