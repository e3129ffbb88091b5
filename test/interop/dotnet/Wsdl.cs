using System.Web.Services.Description;
using System.Xml;
using System.Xml.Schema;

namespace Interop;

/// <summary>A served WSDL as .NET's ServiceDescription reads it, every import followed.</summary>
public sealed class Wsdl
{
    private const string Wsaw = "http://www.w3.org/2006/05/addressing/wsdl";

    public required ServiceDescription Description { get; init; }
    public required XmlSchemaSet Schemas { get; init; }

    public static Wsdl Read(string url)
    {
        var bytes = new HttpClient().GetByteArrayAsync(url).GetAwaiter().GetResult();
        var description = ServiceDescription.Read(new MemoryStream(bytes)) ?? throw new InvalidOperationException($"{url} is no WSDL");
        var problems = new List<string>();
        var schemas = new XmlSchemaSet { XmlResolver = new XmlUrlResolver() };
        schemas.ValidationEventHandler += (_, problem) => problems.Add(problem.Message);
        // Read again from the text: the importer resolves relative schemaLocations by where a schema came from.
        var document = new XmlDocument();
        document.Load(new MemoryStream(bytes));
        // .NET's importer cannot make a dictionary (dotnet/runtime#98240); without the note that it is one it makes an array of keys and values, the same on the wire.
        foreach (var note in document.GetElementsByTagName("IsDictionary").Cast<XmlElement>().ToList()) note.ParentNode!.RemoveChild(note);
        foreach (XmlElement element in document.GetElementsByTagName("schema", XmlSchema.Namespace))
        {
            using var reader = XmlReader.Create(new StringReader(Inherited(element)), new XmlReaderSettings(), url);
            schemas.Add(XmlSchema.Read(reader, (_, problem) => problems.Add(problem.Message))!);
        }
        schemas.Compile();
        if (problems.Count > 0) throw new InvalidOperationException($"{url}: {string.Join("; ", problems)}");
        return new Wsdl { Description = description, Schemas = schemas };
    }

    /// <summary>The schema with the prefixes that are declared around it.</summary>
    private static string Inherited(XmlElement schema)
    {
        for (var around = schema.ParentNode as XmlElement; around is not null; around = around.ParentNode as XmlElement)
        {
            foreach (XmlAttribute one in around.Attributes)
            {
                if (one.Prefix == "xmlns" && !schema.HasAttribute(one.Name)) schema.SetAttribute(one.Name, one.Value);
            }
        }
        return schema.OuterXml;
    }

    /// <summary>Where the port with a binding of this SOAP version listens.</summary>
    public Uri Address(bool soap12)
    {
        foreach (Port port in Description.Services.Cast<Service>().SelectMany(service => service.Ports.Cast<Port>()))
        {
            var address = port.Extensions.OfType<SoapAddressBinding>().FirstOrDefault();
            if (address is not null && address is Soap12AddressBinding == soap12) return new Uri(address.Location);
        }
        throw new InvalidOperationException($"no port for SOAP {(soap12 ? "1.2" : "1.1")}");
    }

    public string ActionOf(OperationMessage message) =>
        message.ExtensibleAttributes?.FirstOrDefault(one => one.NamespaceURI == Wsaw && one.LocalName == "Action")?.Value ?? throw new InvalidOperationException($"{message.Message.Name} has no wsaw:Action");

    public XmlSchemaElement ElementOf(XmlQualifiedName message)
    {
        var part = Description.Messages[message.Name].Parts[0];
        return (XmlSchemaElement?)Schemas.GlobalElements[part.Element] ?? throw new InvalidOperationException($"no element {part.Element}");
    }

    public IEnumerable<XmlSchemaElement> PartsOf(XmlQualifiedName message) => ElementOf(message).ElementSchemaType is XmlSchemaComplexType { ContentTypeParticle: XmlSchemaSequence sequence }
        ? sequence.Items.Cast<XmlSchemaElement>() : [];
}
