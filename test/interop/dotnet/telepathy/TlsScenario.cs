using System.IdentityModel.Selectors;
using System.Security.Cryptography.X509Certificates;
using System.ServiceModel;
using System.ServiceModel.Security;

namespace Interop.Telepathy;

/// <summary>NetTcpBinding with security mode Transport and certificates. The chain of the server's certificate is checked against the one authority of the test.</summary>
public static class TlsScenario
{
    /// <summary>`client`: PFX file of the client's certificate; "" where the server asks for none. `stranger`: of one that it does not trust.</summary>
    public static void Run(Report report, string launcher, string authority, string client, string stranger)
    {
        var grid = new Grid(launcher);
        var trusted = X509CertificateLoader.LoadCertificateFromFile(authority);
        var shown = client == "" ? null : X509CertificateLoader.LoadPkcs12FromFile(client, "");
        var session = grid.Create(new SessionStartInfo { ServiceName = "Wayward", MaxUnits = 1, Secure = true });
        var address = session.Broker.BrokerEpr![0]!;
        var name = shown is null ? "TLS" : "TLS with client certificates";
        report.Check($"{name}: calls, and a megabyte of text", () => PlainScenario.Calls(Binding(session, shown is not null), address, factory => Trust(factory, trusted, shown)));
        report.Check($"{name}: streamed", () =>
        {
            var binding = Binding(session, shown is not null);
            binding.TransferMode = TransferMode.Streamed;
            PlainScenario.Calls(binding, address, factory => Trust(factory, trusted, shown));
        });
        report.Check($"{name}: one channel after another", () =>
        {
            for (var i = 0; i < 5; i++) Same.Check($"turn {i}", Grid.Call(Binding(session, shown is not null), address, (IEchoSvc proxy) => proxy.Echo($"turn {i}"), factory => Trust(factory, trusted, shown)));
        });
        report.Check($"{name}: Windows security is refused at once all the same", () => Same.Throws<ProtocolException>(() => Grid.Call(new NetTcpBinding(), address, (IEchoSvc proxy) => proxy.Echo("refused"))));
        if (shown is not null)
        {
            report.Check($"{name}: who shows none is refused", () => Same.Throws<CommunicationException>(() => PlainScenario.Calls(Binding(session, false), address, factory => Trust(factory, trusted, null))));
            var own = X509CertificateLoader.LoadPkcs12FromFile(stranger, "");
            report.Check($"{name}: who shows one that nobody has signed is refused", () => Same.Throws<CommunicationException>(() => PlainScenario.Calls(Binding(session, true), address, factory => Trust(factory, trusted, own))));
        }
        report.Check($"{name}: without security it is served too, where it is not required", () => Same.Check("clear", Grid.Call(session.Binding(), address, (IEchoSvc proxy) => proxy.Echo("clear"))));
        session.Close();
    }

    private static NetTcpBinding Binding(Session session, bool withCertificate)
    {
        var binding = session.Binding();
        binding.Security.Mode = SecurityMode.Transport;
        binding.Security.Transport.ClientCredentialType = withCertificate ? TcpClientCredentialType.Certificate : TcpClientCredentialType.None;
        return binding;
    }

    private static void Trust(ChannelFactory<IEchoSvc> factory, X509Certificate2 authority, X509Certificate2? shown)
    {
        factory.Credentials.ServiceCertificate.Authentication.CertificateValidationMode = X509CertificateValidationMode.Custom;
        factory.Credentials.ServiceCertificate.Authentication.CustomCertificateValidator = new SignedBy(authority);
        factory.Credentials.ServiceCertificate.Authentication.RevocationMode = X509RevocationMode.NoCheck;
        if (shown is not null) factory.Credentials.ClientCertificate.Certificate = shown;
    }

    private sealed class SignedBy(X509Certificate2 authority) : X509CertificateValidator
    {
        public override void Validate(X509Certificate2 certificate)
        {
            using var chain = new X509Chain { ChainPolicy = { RevocationMode = X509RevocationMode.NoCheck, TrustMode = X509ChainTrustMode.CustomRootTrust, CustomTrustStore = { authority } } };
            if (!chain.Build(certificate)) throw new SecurityNegotiationException(string.Join("; ", chain.ChainStatus.Select(one => one.StatusInformation)));
        }
    }
}
