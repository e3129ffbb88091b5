using System.Runtime.Serialization;

namespace Interop.Telepathy;

/// <summary>What a session is asked for with. .NET writes members in alphabetical order, and all of them.</summary>
[DataContract(Name = "SessionStartInfoContract", Namespace = "http://hpc.microsoft.com/")]
public class SessionStartInfo
{
    [DataMember] public bool AdminJobForHostInDiag { get; set; }
    [DataMember] public int? AllocationGrowLoadRatioThreshold { get; set; }
    [DataMember] public int? AllocationShrinkLoadRatioThreshold { get; set; }
    [DataMember] public bool? AutoDisposeBrokerClient { get; set; }
    [DataMember] public bool? CanPreempt { get; set; } = true;
    [DataMember] public byte[]? Certificate { get; set; }
    [DataMember] public int? ClientBrokerHeartbeatInterval { get; set; }
    [DataMember] public int? ClientBrokerHeartbeatRetryCount { get; set; }
    [DataMember] public int? ClientConnectionTimeout { get; set; }
    [DataMember] public int? ClientIdleTimeout { get; set; }
    [DataMember] public Version? ClientVersion { get; set; } = new(5, 0, 0, 0);
    [DataMember] public string? DependFiles { get; set; }
    [DataMember] public Dictionary<string, string>? DependFilesStorageInfo { get; set; } = [];
    [DataMember] public string? DiagnosticBrokerNode { get; set; }
    [DataMember] public int? DispatcherCapacityInGrowShrink { get; set; }
    [DataMember] public Dictionary<string, string>? Environments { get; set; } = [];
    [DataMember] public int? ExtendedPriority { get; set; }
    [DataMember] public string[]? IpAddress { get; set; }
    [DataMember] public bool IsNoSession { get; set; }
    [DataMember] public string? JobTemplate { get; set; }
    [DataMember] public bool? LocalUser { get; set; }
    [DataMember] public int? MaxMessageSize { get; set; }
    [DataMember] public int? MaxUnits { get; set; }
    [DataMember] public int? MessagesThrottleStartThreshold { get; set; }
    [DataMember] public int? MessagesThrottleStopThreshold { get; set; }
    [DataMember] public int? MinUnits { get; set; }
    [DataMember] public string? NodeGroupsStr { get; set; }
    [DataMember] public List<int>? ParentJobIds { get; set; }
    [DataMember] public string? Password { get; set; }
    [DataMember] public string? PfxPassword { get; set; }
    [DataMember] public int? Priority { get; set; }
    [DataMember] public string? RegPath { get; set; }
    [DataMember] public string? RequestedNodesStr { get; set; }
    [DataMember] public int? ResourceUnitType { get; set; }
    [DataMember] public int Runtime { get; set; } = -1;
    [DataMember] public bool? SavePassword { get; set; }
    [DataMember] public bool Secure { get; set; }
    [DataMember] public int? ServiceHangTimeout { get; set; }
    [DataMember] public int? ServiceHostIdleTimeout { get; set; }
    [DataMember] public string? ServiceJobName { get; set; }
    [DataMember] public string? ServiceJobProject { get; set; }
    [DataMember] public string? ServiceName { get; set; }
    [DataMember] public int? ServiceOperationTimeout { get; set; }
    [DataMember] public Version? ServiceVersion { get; set; }
    [DataMember] public int? SessionIdleTimeout { get; set; }
    [DataMember] public bool ShareSession { get; set; }
    [DataMember] public TransportScheme TransportScheme { get; set; } = TransportScheme.NetTcp;
    [DataMember] public bool UseAad { get; set; }
    [DataMember] public bool? UseAzureQueue { get; set; } = false;
    [DataMember] public bool UseInprocessBroker { get; set; }
    [DataMember] public bool UseSessionPool { get; set; }
    [DataMember] public bool UseWindowsClientCredential { get; set; }
    [DataMember] public string? Username { get; set; }
}

[Flags]
public enum TransportScheme { None = 0, NetTcp = 1, Http = 2, Custom = 4, WebAPI = 8, NetHttp = 16, AzureStorage = 32 }

public enum BrokerClientStatus { Unknown, Ready, Processing, Finished }

public enum EndOfResponsesReason { Success, ClientPurged, ClientTimeout }

public enum JobState { Configuring = 1, Submitted = 2, Validating = 4, ExternalValidation = 8, Queued = 16, Running = 32, Finishing = 64, Finished = 128, Failed = 256, Canceled = 512, Canceling = 1024 }

/// <summary>A member that comes out of alphabetical order stays null, without any error: what is filled in here came in order.</summary>
[DataContract(Name = "SessionAllocateInfo", Namespace = "http://hpc.microsoft.com/SessionLauncher")]
public class SessionAllocateInfo
{
    [DataMember] public string[]? BrokerLauncherEpr { get; set; }
    [DataMember] public string? Id { get; set; }
    [DataMember] public Version? ServiceVersion { get; set; }
    [DataMember] public SessionInfo? SessionInfo { get; set; }
}

[DataContract(Name = "SessionAllocateInfo", Namespace = "http://hpc.microsoft.com/SessionLauncher")]
public class SessionAllocateInfo2016
{
    [DataMember] public string[]? BrokerLauncherEpr { get; set; }
    [DataMember] public int Id { get; set; }
    [DataMember] public Version? ServiceVersion { get; set; }
    [DataMember] public SessionInfo? SessionInfo { get; set; }
}

[DataContract(Name = "SessionInfo", Namespace = "http://hpc.microsoft.com/SessionLauncher")]
public class SessionInfo
{
    [DataMember] public string[]? BrokerEpr { get; set; }
    [DataMember] public string? BrokerLauncherEpr { get; set; }
    [DataMember] public int ClientBrokerHeartbeatInterval { get; set; }
    [DataMember] public int ClientBrokerHeartbeatRetryCount { get; set; }
    [DataMember] public string[]? ControllerEpr { get; set; }
    [DataMember] public bool Durable { get; set; }
    [DataMember] public string? Id { get; set; }
    [DataMember] public JobState JobState { get; set; }
    [DataMember] public string[]? ResponseEpr { get; set; }
    [DataMember] public bool Secure { get; set; }
    [DataMember] public Version? ServerVersion { get; set; }
    [DataMember] public int ServiceOperationTimeout { get; set; }
    [DataMember] public Version? ServiceVersion { get; set; }
    [DataMember] public string[]? SessionACL { get; set; }
    [DataMember] public string? SessionOwner { get; set; }
    [DataMember] public TransportScheme TransportScheme { get; set; }
    [DataMember] public bool UseAad { get; set; }
    [DataMember] public bool UseInprocessBroker { get; set; }
}

[DataContract(Name = "BrokerInitializationResult", Namespace = "http://hpc.microsoft.com/BrokerLauncher")]
public class BrokerInitializationResult
{
    [DataMember] public string? AzureControllerRequestQueueUri { get; set; }
    [DataMember] public string? AzureControllerResponseQueueUri { get; set; }
    [DataMember] public string? AzureRequestBlobUri { get; set; }
    [DataMember] public string[]? AzureRequestQueueUris { get; set; }
    [DataMember] public string?[]? BrokerEpr { get; set; }
    [DataMember] public string? BrokerUniqueId { get; set; }
    [DataMember] public int ClientBrokerHeartbeatInterval { get; set; }
    [DataMember] public int ClientBrokerHeartbeatRetryCount { get; set; }
    [DataMember] public string?[]? ControllerEpr { get; set; }
    [DataMember] public long MaxMessageSize { get; set; }
    [DataMember] public string?[]? ResponseEpr { get; set; }
    [DataMember] public int ServiceOperationTimeout { get; set; }
    [DataMember] public bool SupportsMessageDetails { get; set; }
    [DataMember] public bool UseAzureQueue { get; set; }
}

[DataContract(Name = "ClusterInfoContract", Namespace = "http://hpc.microsoft.com/SessionLauncher")]
public class ClusterInfo
{
    [DataMember] public string? AzureStorageConnectionString { get; set; }
    [DataMember] public string? ClusterId { get; set; }
    [DataMember] public string? ClusterName { get; set; }
    [DataMember] public string? NetworkTopology { get; set; }
}

[DataContract(Name = "RetryOperationError", Namespace = "http://hpc.microsoft.com/session/")]
public class RetryOperationError
{
    public const string Action = "http://hpc.microsoft.com/session/RetryOperationError";
    [DataMember(Name = "lastFailedServiceId")] public string? LastFailedServiceId { get; set; }
    [DataMember(Name = "reason")] public string? Reason { get; set; }
    [DataMember(Name = "retryCount")] public int RetryCount { get; set; }
}
