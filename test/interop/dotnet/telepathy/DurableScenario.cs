using System.ServiceModel;

namespace Interop.Telepathy;

/// <summary>Durable sessions: two processes after each other, a broker and a head that are killed.</summary>
public static class DurableScenario
{
    private const int Flushed = 300;
    private const int Rest = 200;

    /// <summary>The first process: it is killed with its channels open once all is sent.</summary>
    public static void Begin(Report report, string launcher, string clientId)
    {
        var grid = new Grid(launcher);
        report.Check("durable: CreateDurable, two batches, Flush and EndRequests", () =>
        {
            var session = grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", MaxUnits = 2 }, durable: true);
            var client = new BrokerClient(session, clientId);
            for (var i = 0; i < Flushed; i++) client.Send($"request {i}", i);
            client.Flush();
            Same.Check((Flushed, BrokerClientStatus.Ready), (client.Controller.GetRequestsCount(clientId), client.Controller.GetBrokerClientStatus(clientId)));
            for (var i = 0; i < Rest; i++) client.Send($"request {Flushed + i}", Flushed + i);
            client.EndRequests();
            Report.Say(new { check = "durable: EndRequests has returned", ok = true });
            Director.Ask("kill me", session.Id);
        });
    }

    /// <summary>The second process knows the session's id and the client's, and nothing else.</summary>
    public static void Attach(Report report, string launcher, string sessionId, string clientId)
    {
        var session = new Grid(launcher).Attach(sessionId);
        report.Check("durable: another process attaches and reads everything", () =>
        {
            Same.Check(true, session.IsDurable);
            Same.Check(session.Broker.BrokerUniqueId, session.Ping());
            CheckAll(session, clientId, Flushed + Rest);
        });
        report.Check("durable: and again from the beginning, as often as it likes, on one channel", () =>
        {
            using var responses = new Responses(session, clientId);
            for (var round = 0; round < 3; round++) CheckAll(responses, Flushed + Rest);
        });
        report.Check("durable: Current goes on where the last window ended", () =>
        {
            using var responses = new Responses(session, clientId);
            var data = Guid.NewGuid().ToString();
            responses.Ask(Echoes.Action, data, GetResponsePosition.Begin, 100).Wait();
            var seen = Enumerable.Range(0, 100).Select(_ => responses.Next().UserData).ToHashSet();
            responses.Ask(Echoes.Action, data, GetResponsePosition.Current, -1).Wait();
            // The end may come before the last response; its count is of all that were pushed from the beginning.
            for (EndOfResponses? end = null; end is null || seen.Count < end.Count;)
            {
                var one = responses.Next();
                if (one.End is null) seen.Add(one.UserData); else end = one.End;
            }
            Same.Check(Flushed + Rest, seen.Count);
        });
        report.Check("durable: responses of another action are neither pushed nor counted", () =>
        {
            using var responses = new Responses(session, clientId);
            var (messages, end) = responses.All("http://tempuri.org/IEchoSvc/EchoData");
            Same.Check((0, 0), (messages.Count, end.Count));
        });
        report.Check("durable: Close removes it", () =>
        {
            session.Close();
            var fault = Same.Throws<FaultException<SessionFault>>(() => new Grid(launcher).Attach(sessionId));
            Same.Check(0x03000001, fault.Detail.Code); // InvalidSessionId
        });
    }

    /// <summary>The broker is killed: heartbeats of both kinds of session change, the durable one is attached to again and has all.</summary>
    public static void BrokerKilled(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        var durable = Filled(grid, "survivor", out var client);
        var interactive = grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", MaxUnits = 1 });
        report.Check("kill -9 of the broker: PingBroker2 does not say the same any more", () =>
        {
            using var heartbeat = new ChannelFactory<IBrokerLauncher>(Grid.NetTcp(), new EndpointAddress(durable.BrokerLauncher));
            var connection = heartbeat.CreateChannel(); // kept open, as HPC's client keeps it
            Session[] both = [durable, interactive];
            foreach (var one in both) Same.Check(one.Broker.BrokerUniqueId, connection.PingBroker2(one.Id));
            foreach (var one in both) Director.Ask("kill worker", one.Id); // they may have the same one
            foreach (var one in both) if (Heartbeat(connection, one.Id) == one.Broker.BrokerUniqueId) throw new Difference($"the heartbeat of session {one.Id} is the killed broker's");
            Quietly.Close((IClientChannel)connection);
        });
        report.Check("kill -9 of the broker: who attaches to the durable session again gets every response", () =>
        {
            var again = grid.Attach(durable.Id);
            if (again.Broker.BrokerUniqueId == durable.Broker.BrokerUniqueId) throw new Difference("the new broker has the old one's unique id");
            Same.Check(again.Broker.BrokerUniqueId, again.Ping());
            using var responses = new Responses(again, "survivor");
            var (messages, _, _) = responses.Enumerate();
            Answers.Check(client, messages, Flushed);
            again.Close();
        });
        report.Check("kill -9 of the broker: the interactive session has failed, by name", () =>
        {
            var fault = Same.Throws<FaultException<SessionFault>>(() => grid.Attach(interactive.Id));
            Same.Check(true, fault.Detail.Reason is { Length: > 0 });
            Faults.CheckContext(fault);
        });
        client.Dispose();
    }

    /// <summary>The head is killed while responses are pushed: channels break at once, the session does not.</summary>
    public static void HeadKilled(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        var session = Filled(grid, "unmoved", out var client);
        report.Check("kill -9 of the head: open channels break at once", () =>
        {
            using var responses = new Responses(session, "unmoved");
            var data = Guid.NewGuid().ToString();
            responses.Ask(Echoes.Action, data, GetResponsePosition.Begin, 50).Wait();
            for (var i = 0; i < 50; i++) responses.Next();
            Director.Ask("kill head");
            Same.Throws<CommunicationException>(() => responses.Next());
            Same.Throws<CommunicationException>(() => client.Controller.GetRequestsCount("unmoved"));
        });
        report.Check("kill -9 of the head: attached again, the durable session has the same broker and all responses", () =>
        {
            var again = grid.Attach(session.Id);
            Same.Check(session.Broker.BrokerUniqueId, again.Broker.BrokerUniqueId);
            using var responses = new Responses(again, "unmoved");
            Answers.Check(client, responses.Enumerate().Messages, Flushed);
            again.Close();
        });
        client.Dispose();
    }

    /// <summary>A fault or two are borne, as HPC's client bears them: who asks in the moment in which a broker dies is told so by a fault.</summary>
    private static string? Heartbeat(IBrokerLauncher connection, string sessionId)
    {
        for (var borne = 0; ; borne++)
        {
            try { return connection.PingBroker2(sessionId); } catch (FaultException) when (borne < 100) { Thread.Sleep(50); }
        }
    }

    private static Session Filled(Grid grid, string clientId, out BrokerClient client)
    {
        var session = grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", MaxUnits = 2 }, durable: true);
        client = new BrokerClient(session, clientId);
        for (var i = 0; i < Flushed; i++) client.Send($"request {i}", i);
        client.EndRequests();
        return session;
    }

    private static void CheckAll(Session session, string clientId, int count)
    {
        using var responses = new Responses(session, clientId);
        CheckAll(responses, count);
    }

    private static void CheckAll(Responses responses, int count)
    {
        var (messages, end, _) = responses.Enumerate();
        Same.Check((count, EndOfResponsesReason.Success), (end.Count, end.Reason));
        Same.Check(Enumerable.Range(0, count).ToArray(), messages.Select(one => one.UserData ?? -1).Order().ToArray());
        foreach (var one in messages) if (one.Result?.EndsWith($"request {one.UserData}", StringComparison.Ordinal) != true) throw new Difference($"request {one.UserData} was answered with {one.Result ?? one.Fault?.Message}");
    }
}
