using System.ServiceModel;

namespace Interop.Telepathy;

/// <summary>An interactive session as the Telepathy client has it: launchers, requests with user data, both ways of reading, status, purge, close.</summary>
public static class SessionScenario
{
    private const int Requests = 1200;

    public static void Run(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        Session? created = null;
        report.Check("Allocate and Create: addresses by scheme, sizes and times that HPC's client can work with", () =>
        {
            created = grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", MaxUnits = 2 });
            var broker = created.Broker;
            Same.Check($"{launcher}/BrokerLauncher", created.BrokerLauncher);
            Same.Check(($"{launcher}/{created.Id}/NetTcp", $"{launcher}/{created.Id}/NetTcp/Controller", $"{launcher}/{created.Id}/NetTcp/GetResponse"), (broker.BrokerEpr![0], broker.ControllerEpr![0], broker.ResponseEpr![0]));
            Same.Check((true, true, null as string), (broker.BrokerEpr[1]!.StartsWith("http://"), broker.ControllerEpr[1]!.StartsWith("http://"), broker.ResponseEpr[1]));
            Same.Check((20_000, 3, true, true, false), (broker.ClientBrokerHeartbeatInterval, broker.ClientBrokerHeartbeatRetryCount, broker.ServiceOperationTimeout > 0, broker.MaxMessageSize > 65_536, broker.UseAzureQueue));
            Same.Check(broker.BrokerUniqueId, created.Ping());
            Same.Check(true, created.Launcher(bl => bl.PingBroker(created.Id)));
        });
        if (created is null) return;
        report.Check("GetInfo has every member, and the session launcher's other operations answer", () => Inform(grid, created));
        report.Check("enumerator: 512, then windows of 256, to the exact count", () =>
        {
            using var client = new BrokerClient(created, "enumerator");
            Same.Check(BrokerClientStatus.Ready, client.Controller.GetBrokerClientStatus(client.Id));
            for (var i = 0; i < Requests; i++) client.Send($"request {i}", i);
            client.EndRequests();
            using var responses = client.Responses();
            var (messages, end, windows) = responses.Enumerate();
            Answers.Check(client, messages, Requests);
            Same.Check((Requests, EndOfResponsesReason.Success, 4), (end.Count, end.Reason, windows));
            Same.Check((Requests, BrokerClientStatus.Finished), (client.Controller.GetRequestsCount("ENUMERATOR"), client.Controller.GetBrokerClientStatus(client.Id)));
            var again = responses.Enumerate();
            Same.Check((0, 0), (again.Messages.Count, again.End.Count)); // interactive: what was delivered is gone, and the end's count begins anew
        });
        report.Check("callback: one call for all, made before the first request is sent", () =>
        {
            using var client = new BrokerClient(created, "Call-Back {1}");
            using var responses = client.Responses();
            var reading = Task.Run(() => responses.All());
            for (var i = 0; i < 500; i++) client.Send($"request {i}", i);
            client.EndRequests();
            var (messages, end) = reading.Result;
            Answers.Check(client, messages, 500);
            Same.Check((500, EndOfResponsesReason.Success), (end.Count, end.Reason));
        });
        report.Check("the client without an id, Flush in between, a request sent twice", () =>
        {
            using var client = new BrokerClient(created, "");
            var twice = UniqueIdText.New();
            client.Send("request 0", 0, twice);
            client.Send("request 0", 0, twice);
            client.Flush();
            for (var i = 1; i < 10; i++) client.Send($"request {i}", i);
            client.EndRequests();
            using var responses = client.Responses();
            var (messages, end) = responses.All();
            Answers.Check(client, messages, 10);
            Same.Check(10, end.Count);
        });
        report.Check("purge tells whoever reads, and the id may be used again", () =>
        {
            using var client = new BrokerClient(created, "purged");
            client.Send("request 0", 0);
            client.Flush();
            using var responses = client.Responses();
            var clientData = Guid.NewGuid().ToString();
            responses.Ask(Echoes.Action, clientData, GetResponsePosition.Begin, 512).Wait();
            Answers.Check(client, [responses.Next()], 1);
            client.Controller.Purge(client.Id);
            var end = responses.Next();
            Same.Check((EndOfResponses.Action, clientData, EndOfResponsesReason.ClientPurged, 1), (end.Action, end.CallbackId, end.End!.Reason, end.End.Count));
            using var again = new BrokerClient(created, "purged");
            Same.Check(0, again.Controller.GetRequestsCount(again.Id));
            again.Send("request 0", 0);
            again.EndRequests();
            Same.Check(1, again.Controller.GetRequestsCount(again.Id));
        });
        report.Check("Close ends it: no broker answers, nothing listens, and closing again is well", () =>
        {
            created.Close();
            Same.Check("PingBroker2Result_BrokerNotExist", created.Ping());
            Same.Throws<EndpointNotFoundException>(() => created.Controller(controller => controller.GetRequestsCount("")));
            created.Close();
        });
    }

    private static void Inform(Grid grid, Session session)
    {
        var info = grid.Launch(sl => sl.GetInfo("net.tcp://", session.Id))!;
        Same.Check((session.Id, false, JobState.Running, false, TransportScheme.NetTcp, session.BrokerLauncher, false), (info.Id, info.Durable, info.JobState, info.Secure, info.TransportScheme, info.BrokerLauncherEpr, info.UseInprocessBroker));
        Same.Check((20_000, 3, "Everyone", 0, true), (info.ClientBrokerHeartbeatInterval, info.ClientBrokerHeartbeatRetryCount, info.SessionOwner, info.SessionACL?.Length ?? -1, info.ServerVersion?.Major >= 5));
        Same.Check(true, grid.Launch(sl => sl.GetServerVersion()).Major >= 5);
        Same.Check(true, grid.Launch(sl => sl.GetServiceVersions("ccpechosvc")) is not null);
        Same.Check(true, grid.Launch(sl => sl.GetSOAConfigurations(["TaskCancelGracePeriod", "nobody's"]))!.ContainsKey("TaskCancelGracePeriod"));
        Same.Check(true, grid.Launch(sl => sl.GetClusterInfo())!.ClusterId is { Length: > 0 });
        var info2016 = grid.Launch2016(sl => sl.GetInfoV5Sp1("net.tcp://", int.Parse(session.Id), false))!;
        Same.Check((session.Id, session.BrokerLauncher), (info2016.Id, info2016.BrokerLauncherEpr));
        var allocated = grid.Launch2016(sl => sl.AllocateDurableV5(new SessionStartInfo { ServiceName = "CcpEchoSvc", ClientVersion = new Version(5, 2, 0, 0) }, "net.tcp://"))!;
        Same.Check((true, session.BrokerLauncher), (allocated.Id > 0, allocated.BrokerLauncherEpr![0]));
        grid.Launch2016(sl => { sl.TerminateV5(allocated.Id); return true; });
    }
}

public static class Answers
{
    /// <summary>Each request that the client sent has one answer, with its user data and related to its message id.</summary>
    public static void Check(BrokerClient client, IReadOnlyCollection<Pushed> messages, int count, Func<int, string>? expected = null)
    {
        Same.Check(count, messages.Count);
        Same.Check(count, messages.Select(one => one.RelatesTo).Distinct().Count());
        foreach (var one in messages)
        {
            if (one.Fault is not null) throw new Difference($"a fault came: {one.Fault.Message}");
            Same.Check((Echoes.ReplyAction, Echoes.Action), (one.Action, one.RequestAction));
            if (one.RelatesTo is null || !client.Sent.TryGetValue(one.RelatesTo, out var userData)) throw new Difference($"relates to {one.RelatesTo}, which was not sent");
            Same.Check(userData, one.UserData);
            var text = expected?.Invoke(userData) ?? $"request {userData}";
            if (one.Result?.EndsWith(text, StringComparison.Ordinal) != true) throw new Difference($"{text} was answered with {one.Result}");
        }
    }
}
