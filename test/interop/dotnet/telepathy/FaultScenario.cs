using System.ServiceModel;

namespace Interop.Telepathy;

/// <summary>Every kind of "no" in the form in which HPC's client looks for it.</summary>
public static class FaultScenario
{
    private const string Context = "http://www.microsoft.com/hpc";

    public static void Run(Report report, string launcher)
    {
        var grid = new Grid(launcher);
        report.Check("what cannot be started is said by Allocate, as a typed SessionFault with its number and context", () =>
        {
            Refused(0x0300001e, ["NoSuchService"], () => grid.Create(new SessionStartInfo { ServiceName = "NoSuchService" })); // Service_NotFound
            Refused(0x03000020, ["CcpEchoSvc", "9.9"], () => grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", ServiceVersion = new Version(9, 9) })); // ServiceVersion_NotFound
            Refused(0x03000011, [], () => grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", Secure = true })); // Broker_BindingSecurityModeMismatched
            Refused(0x03000000, null, () => grid.Create(new SessionStartInfo { ServiceName = "CcpEchoSvc", MaxUnits = 1, MinUnits = 5 })); // InvalidArgument
            Refused(0x03000000, null, () => grid.Launch(sl => sl.Allocate(new SessionStartInfo { ServiceName = "CcpEchoSvc" }, "az.table")));
            Refused(0x03000001, null, () => grid.Launch(sl => sl.GetInfo("net.tcp://", "7"))); // InvalidSessionId
        });
        var session = grid.Create(new SessionStartInfo { ServiceName = "Wayward", MaxUnits = 1 });
        report.Check("an operation that is not there is ActionNotSupported", () =>
        {
            Same.Throws<ActionNotSupportedException>(() => session.Launcher(bl => { bl.NotThere(session.Id); return true; }));
            Same.Throws<ActionNotSupportedException>(() => session.Controller(controller => { controller.NotThere(); return true; }));
        });
        report.Check("the controller's refusals are typed SessionFaults, and Ping answers", () => session.Controller(controller =>
        {
            controller.Ping();
            Refused(0x0100001e, null, () => controller.EndRequests(0, "refused", 0, 1000, 1000)); // Broker_EOMReject_NoRequest
            Refused(0x01000002, null, () => controller.EndRequests(1, "refused", 0, 1000, 100)); // OperationTimeout
            Refused(0x03000022, null, () => controller.GetResponsesAQ("", "", GetResponsePosition.Begin, 1, "refused", 0, out _, out _)); // Broker_UnsupportedOperation
            Refused(0x03000017, null, () => controller.GetRequestsCount("another")); // Broker_ClientIdNotMatch: one channel, one id
            return true;
        }));
        report.Check("a client id that no client may have is refused by name", () => session.Controller(controller =>
        {
            Refused(0x03000016, null, () => controller.GetRequestsCount("a/b")); // Broker_InvalidClientIdOrTooLong
            return true;
        }));
        report.Check("faults of the service come as responses: the fault as the service threw it, with user data and the request's action", () =>
        {
            using var client = new BrokerClient(session, "faults");
            string[] inputs = ["throw", "retry", "echo"];
            for (var i = 0; i < inputs.Length; i++) client.Send(inputs[i], i);
            client.EndRequests();
            using var responses = client.Responses();
            var (messages, end) = responses.All(Echoes.Action);
            Same.Check((3, 3), (messages.Count, end.Count));
            foreach (var one in messages) Same.Check((Echoes.Action, client.Sent[one.RelatesTo!]), (one.RequestAction, one.UserData ?? -1));
            var thrown = (FaultException<ExceptionDetail>)messages.Single(one => one.UserData == 0).Fault!;
            Same.Check(("InternalServiceFault", "on purpose"), (thrown.Code.SubCode.Name, thrown.Detail.Message));
            var retried = messages.Single(one => one.UserData == 1);
            var error = (FaultException<RetryOperationError>)retried.Fault!;
            Same.Check((RetryOperationError.Action, "RetryOperationError", Context), (retried.Action, error.Code.SubCode.Name, error.Code.SubCode.Namespace));
            Same.Check(("disk full", 2), (error.Detail.Reason, error.Detail.RetryCount)); // messageResendLimit 1: two tries
            Same.Check("echo", messages.Single(one => one.UserData == 2).Result);
        });
        report.Check("a request under another client id than the channel's first is not taken: EndRequests, which was told of it, says how many came", () =>
        {
            using var client = new BrokerClient(session, "bound");
            client.Send("echo", 0);
            client.Send("echo", 1, clientId: "another");
            Refused(0x01000002, null, () => client.Controller.EndRequests(2, client.Id, 0, 1000, 500));
        });
        session.Close();
    }

    private static void Refused(int code, string[]? context, Action act)
    {
        var fault = Same.Throws<FaultException<SessionFault>>(act);
        if (fault.Detail.Code != code) throw new Difference($"code 0x{fault.Detail.Code:x8} ({fault.Message}), not 0x{code:x8}");
        if (context is not null) Same.Check(context, fault.Detail.Context?.Cast<string>().ToArray());
        Faults.CheckContext(fault);
    }
}
