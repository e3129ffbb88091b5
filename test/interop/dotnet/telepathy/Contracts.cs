using System.ServiceModel;
using System.ServiceModel.Channels;

namespace Interop.Telepathy;

/// <summary>HPC Pack's contracts, as a client declares them: names, namespaces and spelling are what is on the wire. Data contracts: DataContracts.cs.</summary>
[ServiceContract(Name = "ISessionLauncher", Namespace = "http://hpc.microsoft.com/sessionlauncher/")]
public interface ISessionLauncher
{
    [OperationContract] Version GetServerVersion();
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionAllocateInfo? Allocate(SessionStartInfo info, string endpointPrefix);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionAllocateInfo? AllocateDurable(SessionStartInfo info, string endpointPrefix);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionInfo? GetInfo(string endpointPrefix, string sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void Terminate(string sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] Version[] GetServiceVersions(string serviceName);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] string? GetSOAConfiguration(string key);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] Dictionary<string, string?>? GetSOAConfigurations(List<string> keys);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] ClusterInfo? GetClusterInfo();
}

/// <summary>The same contract as HPC Pack 2016's client knows it: other operations, and ids are numbers.</summary>
[ServiceContract(Name = "ISessionLauncher", Namespace = "http://hpc.microsoft.com/sessionlauncher/")]
public interface ISessionLauncher2016
{
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionAllocateInfo2016? AllocateV5(SessionStartInfo info, string endpointPrefix);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionAllocateInfo2016? AllocateDurableV5(SessionStartInfo info, string endpointPrefix);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionInfo? GetInfoV5(string endpointPrefix, int sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] SessionInfo? GetInfoV5Sp1(string endpointPrefix, int sessionId, bool useAad);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void TerminateV5(int sessionId);
}

[ServiceContract(Name = "IBrokerLauncher", Namespace = "http://hpc.microsoft.com/brokerlauncher/")]
public interface IBrokerLauncher
{
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] BrokerInitializationResult? Create(SessionStartInfo info, string sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] BrokerInitializationResult? CreateDurable(SessionStartInfo info, string sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] BrokerInitializationResult? Attach(string sessionId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void Close(string sessionId);
    [OperationContract] bool PingBroker(string sessionID);
    [OperationContract] string? PingBroker2(string sessionID);
    /// <summary>No broker has it: HPC's client finds out by its fault what an older one lacks.</summary>
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void NotThere(string sessionId);
}

[ServiceContract(Name = "IBrokerController", Namespace = "http://hpc.microsoft.com/brokercontroller/")]
public interface IController
{
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void Flush(int count, string clientid, int batchId, int timeoutThrottlingMs, int timeoutFlushMs);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void EndRequests(int count, string clientid, int batchId, int timeoutThrottlingMs, int timeoutEOMMs);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void Purge(string clientid);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] BrokerClientStatus GetBrokerClientStatus(string clientId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] int GetRequestsCount(string clientId);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void GetResponsesAQ(string action, string clientData, GetResponsePosition resetToBegin, int count, string clientId, int sessionHash, out string? azureResponseQueueUri, out string? azureResponseBlobUri);
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] void Ping();
    [OperationContract] void NotThere();
}

[ServiceContract(Name = "ResponseService", Namespace = "http://hpc.microsoft.com", CallbackContract = typeof(IResponseCallback))]
public interface IResponseService
{
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)] Task GetResponsesAsync(string? action, string clientData, GetResponsePosition resetToBegin, int count, string clientId);
}

[ServiceContract(Name = "ResponseServiceCallback", Namespace = "http://hpc.microsoft.com")]
public interface IResponseCallback
{
    [OperationContract(IsOneWay = true, Action = "*")] void SendResponse(Message message);
}

/// <summary>The echo sample's contract, whole and in the two shapes that clients use: a proxy's methods, and messages of their own.</summary>
[ServiceContract(Name = "IEchoSvc", Namespace = "http://tempuri.org/")]
public interface IEchoSvc
{
    [OperationContract] string? Echo(string? input);
    [OperationContract(Name = "EchoData")] Task<int> EchoDataAsync(string? dataClientId);
}

/// <summary>The same contract with calls that can be under way together.</summary>
[ServiceContract(Name = "IEchoSvc", Namespace = "http://tempuri.org/")]
public interface IEchoSvcAsync
{
    [OperationContract(Name = "Echo", Action = Echoes.Action)] Task<string?> EchoAsync(string? input);
}

public static class Echoes
{
    public const string Action = "http://tempuri.org/IEchoSvc/Echo";
    public const string ReplyAction = "http://tempuri.org/IEchoSvc/EchoResponse";
}

[MessageContract(WrapperName = "Echo", WrapperNamespace = "http://tempuri.org/", IsWrapped = true)]
public class EchoRequest
{
    [MessageBodyMember(Namespace = "http://tempuri.org/", Name = "input", Order = 0)] public string? Input;
}

[MessageContract(WrapperName = "EchoResponse", WrapperNamespace = "http://tempuri.org/", IsWrapped = true)]
public class EchoResponse
{
    [MessageBodyMember(Namespace = "http://tempuri.org/", Name = "EchoResult", Order = 0)] public string? Result;
}

[MessageContract(WrapperName = "EndOfResponses", WrapperNamespace = "http://tempuri.org/", IsWrapped = true)]
public class EndOfResponses
{
    public const string Action = "http://hpc.microsoft.com/EndOfGetResponse";
    [MessageBodyMember(Namespace = "http://tempuri.org/", Order = 0)] public int Count;
    [MessageBodyMember(Namespace = "http://tempuri.org/", Order = 1)] public EndOfResponsesReason Reason;
}
