using System.Diagnostics;
using System.ServiceModel;
using System.ServiceModel.Channels;

namespace Interop.Telepathy;

/// <summary>What the transport refuses, as the exceptions that .NET makes of it: at once, never a silent wait.</summary>
public static class RefusalScenario
{
    /// <summary>Less than any time-out of WCF.</summary>
    private static readonly TimeSpan AtOnce = TimeSpan.FromSeconds(20);

    public static void Run(Report report, string launcher)
    {
        var session = new Grid(launcher).Create(new SessionStartInfo { ServiceName = "Wayward", MaxUnits = 1, MaxMessageSize = 100_000 });
        var address = session.Broker.BrokerEpr![0]!;
        report.Check("MaxMessageSize of the start info is what the broker says", () => Same.Check(100_000L, session.Broker.MaxMessageSize));
        foreach (var nowhere in new[] { $"{launcher}/77/NetTcp", $"{address}/Elsewhere", $"{launcher}/", $"{launcher}/SessionLauncher/Internal" })
            report.Check($"nothing listens at {new Uri(nowhere).AbsolutePath.Replace(session.Id, "ID")}: EndpointNotFoundException", () => Fails<EndpointNotFoundException>(Grid.NetTcp(), nowhere));
        report.Check("Windows security, .NET's default, is refused at once", () => Fails<ProtocolException>(new NetTcpBinding(), address));
        report.Check("Windows security at the launchers too", () => Fails<ProtocolException>(new NetTcpBinding(), $"{launcher}/SessionLauncher"));
        report.Check("TLS where none is configured is refused at once", () => Fails<ProtocolException>(new NetTcpBinding(SecurityMode.Transport) { Security = { Transport = { ClientCredentialType = TcpClientCredentialType.None } } }, address));
        report.Check("a request that is too big: CommunicationException that names the quota", () =>
        {
            var error = Fails<CommunicationException>(session.Binding(), address, new string('x', 200_000));
            Same.Check(true, error.ToString().Contains("quota", StringComparison.OrdinalIgnoreCase));
        });
        report.Check("another encoding is refused, not misread", () => Fails<ProtocolException>(new CustomBinding(new BinaryMessageEncodingBindingElement { CompressionFormat = CompressionFormat.GZip }, new TcpTransportBindingElement()), address));
        report.Check("text over net.tcp is served as well", () => PlainScenario.Calls(new CustomBinding(new TextMessageEncodingBindingElement(), new TcpTransportBindingElement { MaxReceivedMessageSize = 1 << 20 }), address, most: 10_000));
        report.Check("and the session serves on", () => Same.Check("well", Grid.Call(session.Binding(), address, (IEchoSvc proxy) => proxy.Echo("well"))));
        session.Close();
    }

    private static T Fails<T>(Binding binding, string address, string text = "refused") where T : Exception
    {
        var watch = Stopwatch.StartNew();
        var error = Same.Throws<T>(() => Grid.Call(binding, address, (IEchoSvc proxy) => proxy.Echo(text)));
        if (watch.Elapsed > AtOnce) throw new Difference($"{typeof(T).Name} came after {watch.Elapsed.TotalSeconds:0} s");
        return error;
    }
}
