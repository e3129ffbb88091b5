using System.Runtime.Serialization;

namespace SoaBroker;

/// <summary>
/// Asks the broker to try the request again, elsewhere if it can: throw a <c>FaultException&lt;RetryOperationError&gt;</c>. It costs the request one of its tries
/// (messageResendLimit); after the last one the client gets the reason. HPC Pack's type of the same name, the same on the wire.
/// </summary>
[DataContract(Namespace = "http://hpc.microsoft.com/session/")]
public sealed class RetryOperationError(string reason)
{
    public const string Action = "http://hpc.microsoft.com/session/RetryOperationError";

    [DataMember(Name = "lastFailedServiceId")]
    public string? LastFailedServiceId { get; set; }

    [DataMember(Name = "reason")]
    public string Reason { get; set; } = reason;

    /// <summary>The broker's count of tries; a service leaves it alone.</summary>
    [DataMember(Name = "retryCount")]
    public int RetryCount { get; set; }
}
