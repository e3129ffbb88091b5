using System.Runtime.Serialization;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Xml;

namespace SoaBroker.Host;

/// <summary>A SOAP fault as a value.</summary>
/// <param name="Code">In SOAP 1.2's words; SOAP 1.1 says Client and Server for Sender and Receiver.</param>
/// <param name="Subcode">SOAP 1.1 has one code only: there a subcode takes its place, as WCF writes it.</param>
/// <param name="Action">Of the message that carries it.</param>
/// <param name="Serializer">For Detail.</param>
public sealed record Fault(string Code, XmlQualifiedName? Subcode, FaultReason Reason, string Action, object? Detail = null, XmlObjectSerializer? Serializer = null)
{
    private const string Soap11 = "http://schemas.xmlsoap.org/soap/envelope/";
    private const string Soap12 = "http://www.w3.org/2003/05/soap-envelope";

    public Message ToMessage(MessageVersion version) => Message.CreateMessage(version, Action, new Body(this, version.Envelope == EnvelopeVersion.Soap12));

    private sealed class Body(Fault fault, bool isSoap12) : BodyWriter(isBuffered: true)
    {
        protected override void OnWriteBodyContents(XmlDictionaryWriter writer)
        {
            if (isSoap12) Write12(writer); else Write11(writer);
        }

        private void Write11(XmlDictionaryWriter writer)
        {
            writer.WriteStartElement("s", "Fault", Soap11);
            writer.WriteStartElement("faultcode", "");
            WriteName(writer, fault.Subcode ?? new XmlQualifiedName(fault.Code switch { "Sender" => "Client", "Receiver" => "Server", var other => other }, Soap11));
            writer.WriteEndElement();
            var text = fault.Reason.GetMatchingTranslation();
            writer.WriteStartElement("faultstring", "");
            writer.WriteAttributeString("xml", "lang", null, text.XmlLang == "" ? "en" : text.XmlLang); // "": of a thread without a culture
            writer.WriteString(text.Text);
            writer.WriteEndElement();
            WriteDetail(writer, "detail", "");
            writer.WriteEndElement();
        }

        private void Write12(XmlDictionaryWriter writer)
        {
            writer.WriteStartElement("s", "Fault", Soap12);
            writer.WriteStartElement("s", "Code", Soap12);
            writer.WriteStartElement("s", "Value", Soap12);
            WriteName(writer, new XmlQualifiedName(fault.Code, Soap12));
            writer.WriteEndElement();
            if (fault.Subcode is { } subcode)
            {
                writer.WriteStartElement("s", "Subcode", Soap12);
                writer.WriteStartElement("s", "Value", Soap12);
                WriteName(writer, subcode);
                writer.WriteEndElement();
                writer.WriteEndElement();
            }
            writer.WriteEndElement();
            writer.WriteStartElement("s", "Reason", Soap12);
            writer.WriteStartElement("s", "Text", Soap12);
            var text = fault.Reason.GetMatchingTranslation();
            writer.WriteAttributeString("xml", "lang", null, text.XmlLang == "" ? "en" : text.XmlLang); // "": of a thread without a culture
            writer.WriteString(text.Text);
            writer.WriteEndElement();
            writer.WriteEndElement();
            WriteDetail(writer, "Detail", Soap12);
            writer.WriteEndElement();
        }

        private static void WriteName(XmlDictionaryWriter writer, XmlQualifiedName name)
        {
            // The prefix stands in a text: it must be declared here, whatever the writer would have chosen.
            if (name.Namespace is Soap11 or Soap12) { writer.WriteString($"s:{name.Name}"); return; }
            if (name.Namespace == "") { writer.WriteString(name.Name); return; }
            writer.WriteXmlnsAttribute("a", name.Namespace);
            writer.WriteString($"a:{name.Name}");
        }

        private void WriteDetail(XmlDictionaryWriter writer, string name, string ns)
        {
            if (fault.Serializer is null) return;
            writer.WriteStartElement(ns == "" ? "" : "s", name, ns);
            fault.Serializer.WriteObject(writer, fault.Detail);
            writer.WriteEndElement();
        }
    }
}
