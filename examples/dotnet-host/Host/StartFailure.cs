namespace SoaBroker.Host;

/// <summary>Why the host cannot serve: said on stderr, which the broker repeats to whoever waits. Exit codes are the last digits of HPC Pack's ServiceHost_* numbers.</summary>
public sealed class StartFailure(int exitCode, string why, Exception? cause = null) : Exception(why, cause)
{
    public const int AssemblyMissing = 1, AssemblyLoad = 2, ContractDiscovery = 3, TypeDiscovery = 4, TypeLoad = 5, ContractNotImplemented = 6,
        RegistrationMissing = 11, NoAssemblyName = 12, BadRegistration = 13, BadCommandLine = 14, NoConfigName = 15, Unexpected = 20, AddressInUse = 21;

    public int ExitCode { get; } = exitCode;
}
