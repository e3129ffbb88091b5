using System.Runtime.Serialization;
using System.ServiceModel;
using System.Xml;

namespace SoaBroker.Host;

/// <summary>What goes wrong → the fault that a WCF service would answer with, and HPC Pack's own.</summary>
public static class Faults
{
    private const string Dispatcher = "http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher";
    private const string Hpc = "http://www.microsoft.com/hpc";
    private const string Session = "http://hpc.microsoft.com/session/";
    /// <summary>With this action the detail's element decides which FaultException&lt;T&gt; a client throws.</summary>
    private const string DefaultAction = SoapFormat.Addressing + "/soap/fault";

    public static Fault MustUnderstand(string header) => new("MustUnderstand", null, Text($"header {header} is not known here"), DefaultAction);

    public static Fault ActionNotSupported(string action) =>
        new("Sender", new("ActionNotSupported", SoapFormat.Addressing), Text($"no operation has the action \"{action}\""), SoapFormat.Addressing + "/fault");

    /// <summary>A body that the contract does not allow.</summary>
    public static Fault BadBody(string why) => new("Sender", new("DeserializationFailed", Dispatcher), Text(why), Dispatcher + "/fault");

    /// <summary>The task is being ended: the broker sends the request elsewhere, and that costs it no try.</summary>
    public static Fault Preempted(int left) => new("Receiver", new("Service_Preempted", Hpc), Text($"the task was preempted; {left} calls are still in progress there"), Session + "SessionFault",
        new SessionFault { Code = SessionFault.ServicePreempted, Context = [left.ToString()], Reason = "the task was preempted; {0} calls are still in progress there" }, new DataContractSerializer(typeof(SessionFault)));

    public static Fault Busy(int waiting, string taskId) => Retry(new RetryOperationError($"{waiting} calls wait here already, which is the most that this host takes") { LastFailedServiceId = taskId });

    private static Fault Retry(RetryOperationError error) =>
        new("Receiver", new("RetryOperationError", Hpc), Text(error.Reason), RetryOperationError.Action, error, new DataContractSerializer(typeof(RetryOperationError)));

    /// <summary>What the service threw. Nothing is told of an exception that is no FaultException, unless the registration file wants it told.</summary>
    public static Fault Of(Exception thrown, Operation operation, bool withDetails, string taskId)
    {
        switch (thrown)
        {
            case FaultException<RetryOperationError> { Detail: { } retry }:
                retry.LastFailedServiceId ??= taskId;
                return Retry(retry);
            case FaultException fault:
                return Said(fault, operation);
            default:
                return Internal(thrown, withDetails);
        }
    }

    /// <summary>An exception that is no FaultException, or a result that cannot be written.</summary>
    public static Fault Internal(Exception thrown, bool withDetails)
    {
        var reason = withDetails ? thrown.Message : "The service could not process the request because of an internal error; the log of its node says more.";
        var said = new Fault("Receiver", new("InternalServiceFault", Dispatcher), Text(reason), Dispatcher + "/fault");
        return withDetails ? said with { Detail = new ExceptionDetail(thrown), Serializer = new DataContractSerializer(typeof(ExceptionDetail)) } : said;
    }

    private static Fault Said(FaultException fault, Operation operation)
    {
        var (code, subcode) = CodeOf(fault.Code);
        var said = new Fault(code, subcode, fault.Reason, fault.Action ?? DefaultAction);
        if (fault.GetType() is not { IsGenericType: true } type) return said;
        var detail = type.GetGenericArguments()[0];
        var declared = operation.Faults.FirstOrDefault(one => one.Type == detail);
        return said with
        {
            Action = declared?.Action ?? fault.Action ?? DefaultAction,
            Detail = type.GetProperty(nameof(FaultException<object>.Detail))!.GetValue(fault),
            Serializer = declared?.Element is var (name, ns) ? new DataContractSerializer(detail, name, ns, operation.KnownTypes) : new DataContractSerializer(detail, operation.KnownTypes),
        };
    }

    /// <summary>A code of the service's own is no code of SOAP 1.2: it becomes a subcode of Sender.</summary>
    private static (string, XmlQualifiedName?) CodeOf(FaultCode? code)
    {
        XmlQualifiedName? Name(FaultCode? one) => one is null ? null : new(one.Name, one.Namespace);
        return code?.Name switch
        {
            null => ("Sender", null),
            "Sender" or "Client" => ("Sender", Name(code.SubCode)),
            "Receiver" or "Server" => ("Receiver", Name(code.SubCode)),
            _ => ("Sender", Name(code)),
        };
    }

    private static FaultReason Text(string text) => new(new FaultReasonText(text, "en"));

    /// <summary>HPC Pack's own fault detail.</summary>
    [DataContract(Name = "SessionFault", Namespace = Session)]
    private sealed class SessionFault
    {
        public const int ServicePreempted = 0x03000024;
        [DataMember] public int Code;
        [DataMember] public object[] Context = [];
        [DataMember] public string Reason = "";
    }
}
