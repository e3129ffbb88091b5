using System.ServiceModel;
using System.ServiceModel.Channels;
using Generated.Orders;

namespace Interop.Telepathy;

/// <summary>Proxies of a service's own contract, pointed at a broker's address and nothing else: calls without user data.</summary>
public static class PlainScenario
{
    public static void Run(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        var echo = grid.Create(new SessionStartInfo { ServiceName = "Wayward", MaxUnits = 1 });
        var orders = grid.Create(new SessionStartInfo { ServiceName = "Orders", MaxUnits = 1 });
        foreach (var (name, binding, scheme) in new (string, Binding, int)[] { ("NetTcpBinding(None)", echo.Binding(), 0), ("NetTcpBinding streamed", Streamed(echo), 0), ("BasicHttpBinding", Clients.Basic(), 1) })
        {
            report.Check($"{name}: calls, nil, empty, and a megabyte of text", () => Calls(binding, echo.Broker.BrokerEpr![scheme]!));
            report.Check($"{name}: 32 calls at once through one proxy", () => Together(binding, echo.Broker.BrokerEpr![scheme]!));
            report.Check($"{name}: faults typed and untyped", () => FaultsOf(binding, orders.Broker.BrokerEpr![scheme]!));
        }
        report.Check("NetTcpBinding(None): sessions take turns on one pooled connection", () =>
        {
            using var ones = new ChannelFactory<IEchoSvc>(echo.Binding(), new EndpointAddress(echo.Broker.BrokerEpr![0]!));
            using var others = new ChannelFactory<IOrders>(echo.Binding(), new EndpointAddress(orders.Broker.BrokerEpr![0]!));
            for (var i = 0; i < 20; i++)
            {
                var one = ones.CreateChannel();
                Same.Check($"turn {i}", one.Echo($"turn {i}"));
                ((IClientChannel)one).Close();
                var other = others.CreateChannel();
                Same.Check((long)i, other.Place(new Order { Id = i }).Number);
                ((IClientChannel)other).Close();
            }
        });
        report.Check("NetTcpBinding(None): a call and a stored request share a channel's client", () =>
        {
            using var client = new BrokerClient(echo, "mixed");
            client.Send("request 0", 0);
            client.EndRequests();
            using var responses = client.Responses();
            Answers.Check(client, responses.All().Messages, 1);
        });
        echo.Close();
        orders.Close();
    }

    public static NetTcpBinding Streamed(Session session)
    {
        var binding = session.Binding();
        binding.TransferMode = TransferMode.Streamed;
        return binding;
    }

    public static void Calls(Binding binding, string address, Action<ChannelFactory<IEchoSvc>>? credentials = null, int most = 1 << 20) => Grid.Call(binding, address, (IEchoSvc proxy) =>
    {
        foreach (var text in new[] { "hello", "", null, "Ä €  </Echo>&\r\n\t😀", new string('x', most) }) Same.Check(text, proxy.Echo(text));
        Same.Check(3, proxy.EchoDataAsync("abc").Result);
        return true;
    }, credentials);

    public static void Together(Binding binding, string address) => Grid.Call(binding, address, (IEchoSvcAsync proxy) =>
    {
        ((IClientChannel)proxy).Open();
        var texts = Enumerable.Range(0, 256).Select(i => $"call {i}").ToArray();
        for (var at = 0; at < texts.Length; at += 32) Same.Check(texts[at..(at + 32)], Task.WhenAll(texts[at..(at + 32)].Select(text => proxy.EchoAsync(text))).Result);
        return true;
    });

    public static void FaultsOf(Binding binding, string address)
    {
        Grid.Call(binding, address, (IOrders proxy) =>
        {
            var typed = Same.Throws<FaultException<OrderFault>>(() => proxy.Place(new Order { Note = "refuse" }));
            Same.Check((7, "refused"), (typed.Detail.Code, typed.Message));
            Same.Check(5L, proxy.Place(new Order { Id = 5 }).Number); // a declared fault leaves the channel open
            return true;
        });
        // WCF's proxies drop a channel with a session once an InternalServiceFault came on it, whoever the server is; a new one is served at once.
        var untyped = Same.Throws<FaultException>(() => Grid.Call(binding, address, (IOrders proxy) => proxy.Place(new Order { Note = "crash" })));
        Same.Check("InternalServiceFault", untyped.Code.SubCode?.Name ?? untyped.Code.Name);
        Same.Check(6L, Grid.Call(binding, address, (IOrders proxy) => proxy.Place(new Order { Id = 6 }).Number));
    }
}
