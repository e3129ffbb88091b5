using System.ServiceModel;
using System.ServiceModel.Channels;

namespace Interop.Telepathy;

/// <summary>TransportScheme.NetHttp: HPC's three broker channels over WebSockets, and proxies that speak binary over HTTP or WebSocket.</summary>
public static class NetHttpScenario
{
    private const int Requests = 600;

    public static void Run(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        var echo = grid.Create(new SessionStartInfo { ServiceName = "Wayward", MaxUnits = 2 }).OverNetHttp();
        var orders = grid.Create(new SessionStartInfo { ServiceName = "Orders", MaxUnits = 1 });
        var http = echo.Broker.BrokerEpr![1]!.Replace($"/{echo.Id}/Http", "");
        report.Check("the addresses of scheme NetHttp", () =>
            Same.Check(($"{http}/{echo.Id}/NetHttp", $"{http}/{echo.Id}/NetHttp/Controller", $"{http}/{echo.Id}/NetHttp/GetResponse"), (echo.Broker.BrokerEpr![4], echo.Broker.ControllerEpr![4], echo.Broker.ResponseEpr![4])));
        var always = echo.NetHttp(WebSocketTransportUsage.Always);
        foreach (var (name, binding) in new (string, Binding)[]
        {
            ("NetHttpBinding, WebSocket always", always),
            ("NetHttpBinding, WebSocket when duplex", echo.NetHttp(WebSocketTransportUsage.WhenDuplex)),
        })
        {
            report.Check($"{name}: calls, nil, empty, and a megabyte of text", () => PlainScenario.Calls(binding, echo.Broker.BrokerEpr![4]!));
            report.Check($"{name}: 32 calls at once through one proxy", () => PlainScenario.Together(binding, echo.Broker.BrokerEpr![4]!));
            report.Check($"{name}: faults typed and untyped", () => PlainScenario.FaultsOf(binding, orders.Broker.BrokerEpr![4]!));
        }
        foreach (var (name, binding) in new (string, Binding)[]
        {
            ("NetHttpBinding, WebSocket never", echo.NetHttp(WebSocketTransportUsage.Never)),
            ("NetHttpBinding, WebSocket always, text", Shaped(echo, binding => binding.MessageEncoding = NetHttpMessageEncoding.Text)),
            ("NetHttpBinding, WebSocket always, streamed", Shaped(echo, binding => binding.TransferMode = TransferMode.Streamed)),
            ("CustomBinding, binary over HTTP", new CustomBinding(new BinaryMessageEncodingBindingElement(), new HttpTransportBindingElement())),
        })
        {
            // .NET reads streamed WebSockets with the quotas that bindings have by default, whatever this one says: strings of 8 KiB.
            report.Check($"{name}: calls, nil and empty", () => PlainScenario.Calls(binding, echo.Broker.BrokerEpr![4]!, most: 8000));
        }
        report.Check("raw duplex channel, controller and enumerator over WebSockets: to the exact count", () =>
        {
            using var client = new BrokerClient(echo, "enumerator");
            Same.Check(BrokerClientStatus.Ready, client.Controller.GetBrokerClientStatus(client.Id));
            for (var i = 0; i < Requests; i++) client.Send($"request {i}", i);
            client.EndRequests();
            using var responses = client.Responses();
            var (messages, end, windows) = responses.Enumerate();
            Answers.Check(client, messages, Requests);
            Same.Check((Requests, EndOfResponsesReason.Success, 2), (end.Count, end.Reason, windows));
        });
        report.Check("callback over a WebSocket: one call for all, made before the first request is sent", () =>
        {
            using var client = new BrokerClient(echo, "callback");
            using var responses = client.Responses();
            var reading = Task.Run(() => responses.All());
            for (var i = 0; i < 500; i++) client.Send($"request {i}", i);
            client.Flush();
            client.EndRequests();
            var (messages, end) = reading.Result;
            Answers.Check(client, messages, 500);
            Same.Check((500, EndOfResponsesReason.Success), (end.Count, end.Reason));
        });
        report.Check("a client id that is not the channel's is refused by a SessionFault", () =>
        {
            using var client = new BrokerClient(echo, "one");
            client.Controller.GetRequestsCount(client.Id);
            Faults.CheckContext(Same.Throws<FaultException<SessionFault>>(() => client.Controller.GetRequestsCount("another")));
        });
        report.Check("the launchers at /NetHttp, over a WebSocket and over HTTP", () =>
        {
            foreach (var binding in new[] { always, echo.NetHttp(WebSocketTransportUsage.Never) })
            {
                Same.Check(true, Grid.Call(binding, $"{http}/SessionLauncher/NetHttp", (ISessionLauncher sl) => sl.GetServerVersion()).Major >= 5);
                Same.Check(echo.Broker.BrokerUniqueId, Grid.Call(binding, $"{http}/BrokerLauncher/NetHttp", (IBrokerLauncher bl) => bl.PingBroker2(echo.Id)));
            }
        });
        report.Check("a message above the limit fails at once, and the session serves on", () =>
        {
            var most = (int)echo.Broker.MaxMessageSize;
            Same.Throws<CommunicationException>(() => Grid.Call(always, echo.Broker.BrokerEpr![4]!, (IEchoSvc proxy) => proxy.Echo(new string('x', most + 1))));
            Same.Check("well", Grid.Call(always, echo.Broker.BrokerEpr![4]!, (IEchoSvc proxy) => proxy.Echo("well")));
        });
        report.Check("once the session is closed its WebSockets are refused", () =>
        {
            echo.Close();
            Same.Throws<CommunicationException>(() => Grid.Call(always, echo.Broker.BrokerEpr![4]!, (IEchoSvc proxy) => proxy.Echo("late")));
        });
        orders.Close();
    }

    private static NetHttpBinding Shaped(Session session, Action<NetHttpBinding> shape)
    {
        var binding = session.NetHttp(WebSocketTransportUsage.Always);
        shape(binding);
        return binding;
    }
}
