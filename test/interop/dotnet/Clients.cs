using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Text;

namespace Interop;

/// <summary>Proxies as any .NET program makes them; addresses come from the WSDL alone.</summary>
public static class Clients
{
    private const int Most = 64 * 1024 * 1024;

    public static BasicHttpBinding Basic() => new() { MaxReceivedMessageSize = Most, ReaderQuotas = { MaxStringContentLength = Most, MaxArrayLength = Most } };

    public static WSHttpBinding WsHttp() => new(SecurityMode.None) { MaxReceivedMessageSize = Most, ReaderQuotas = { MaxStringContentLength = Most, MaxArrayLength = Most } };

    public static CustomBinding Text(MessageVersion version) => new(new TextMessageEncodingBindingElement(version, Encoding.UTF8), new HttpTransportBindingElement { MaxReceivedMessageSize = Most });

    /// <summary>All the ways that .NET speaks SOAP in text over HTTP.</summary>
    public static IEnumerable<(string Name, Binding Binding)> All() =>
    [
        ("BasicHttpBinding", Basic()),
        ("WSHttpBinding(None)", WsHttp()),
        ("CustomBinding SOAP 1.2 with WS-Addressing", Text(MessageVersion.Soap12WSAddressing10)),
        ("CustomBinding SOAP 1.2 without addressing", Text(MessageVersion.CreateVersion(EnvelopeVersion.Soap12, AddressingVersion.None))),
        ("CustomBinding SOAP 1.1 with WS-Addressing", Text(MessageVersion.CreateVersion(EnvelopeVersion.Soap11, AddressingVersion.WSAddressing10))),
    ];

    /// <summary>Runs checks with a proxy over each of the first `most` bindings.</summary>
    public static void Each<T>(string wsdlUrl, int most, Action<string, T> checks)
    {
        var wsdl = Wsdl.Read(wsdlUrl);
        foreach (var (name, binding) in All().Take(most))
        {
            var soap12 = binding.MessageVersion.Envelope == EnvelopeVersion.Soap12;
            var factory = new ChannelFactory<T>(binding, new EndpointAddress(wsdl.Address(soap12)));
            checks(name, factory.CreateChannel());
            factory.Close();
        }
    }
}
