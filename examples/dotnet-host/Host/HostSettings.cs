using System.Globalization;

namespace SoaBroker.Host;

/// <summary>What the node manager says in the environment; the names are HPC Pack's, but for SOA_LISTEN_URL.</summary>
public sealed record HostSettings
{
    /// <summary>Where to listen: address, port and path.</summary>
    public required Uri ListenUrl { get; init; }
    public required string TaskId { get; init; }
    public required int Cores { get; init; }
    /// <summary>Bytes of a request.</summary>
    public required int MaxMessageSize { get; init; }
    /// <summary>How long calls in progress may go on after SIGTERM.</summary>
    public required TimeSpan Grace { get; init; }
    /// <summary>Ends the host when no call came for so long after one was answered; null: never.</summary>
    public required TimeSpan? Idle { get; init; }
    /// <summary>Ends the host when calls are in progress and none of them ends or begins for so long; null: never.</summary>
    public required TimeSpan? Hang { get; init; }

    public static HostSettings FromEnvironment() => new()
    {
        ListenUrl = Uri.TryCreate(Environment.GetEnvironmentVariable("SOA_LISTEN_URL"), UriKind.Absolute, out var url) && url.Scheme == Uri.UriSchemeHttp
            ? url : throw new StartFailure(StartFailure.BadCommandLine, "SOA_LISTEN_URL is not set to http://address:port/path: the node manager says there where a host must listen"),
        TaskId = Environment.GetEnvironmentVariable("CCP_TASKINSTANCEID") ?? "",
        Cores = Number("CCP_NUMCPUS", 1, least: 1),
        MaxMessageSize = Number("CCP_SERVICE_MAXMESSAGESIZE", 4_194_304, least: 1),
        Grace = TimeSpan.FromSeconds(Number("CCP_CANCEL_TASK_GRACEPERIOD", 15, least: 0)), // seconds, alone among these
        Idle = Timeout("CCP_SERVICEHOST_TIMEOUT"),
        Hang = Timeout("CCP_SERVICE_HANG_TIMEOUT"),
    };

    private static TimeSpan? Timeout(string name) => Number(name, -1, least: -1) is var ms and >= 0 ? TimeSpan.FromMilliseconds(ms) : null;

    private static int Number(string name, int absent, int least)
    {
        var text = Environment.GetEnvironmentVariable(name);
        if (string.IsNullOrEmpty(text)) return absent;
        return int.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out var value) && value >= least
            ? value : throw new StartFailure(StartFailure.BadCommandLine, $"{name} is \"{text}\", expected: a whole number from {least}");
    }
}
