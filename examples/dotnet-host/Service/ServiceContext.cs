using System;
using System.Diagnostics;
using System.ServiceModel.Channels;
using System.Threading;

namespace SoaBroker;

/// <summary>What the host tells the service inside it. The first two members are HPC Pack's.</summary>
public static class ServiceContext
{
    private static readonly AsyncLocal<ServiceCall?> call = new();

    /// <summary>Raised once when the task is canceled: calls in progress may still finish within the grace period (CCP_CANCEL_TASK_GRACEPERIOD). What a handler throws is logged.</summary>
    public static event EventHandler<EventArgs>? OnExiting;

    /// <summary>Writes to the log of the node, by way of stderr. CCP_TRACE_SWITCHVALUE says from which level on; Information if it is not set.</summary>
    public static TraceSource Logger { get; } = MakeLogger();

    /// <summary>The call that this code runs for, also behind an await; null outside of one.</summary>
    public static ServiceCall? Current => call.Value;

    private static TraceSource MakeLogger()
    {
        var logger = new TraceSource("Service", Enum.TryParse(Environment.GetEnvironmentVariable("CCP_TRACE_SWITCHVALUE"), out SourceLevels level) ? level : SourceLevels.Information);
        logger.Listeners.Clear();
        logger.Listeners.Add(new ConsoleTraceListener(useErrorStream: true));
        return logger;
    }

    /// <summary>For the host.</summary>
    public static void Enter(ServiceCall? entered) => call.Value = entered;

    /// <summary>For the host.</summary>
    public static void RaiseExiting(Action<Exception> failed)
    {
        foreach (var handler in OnExiting?.GetInvocationList() ?? [])
        {
            try { ((EventHandler<EventArgs>)handler)(null, EventArgs.Empty); }
            catch (Exception error) { failed(error); }
        }
    }
}

/// <param name="MessageId">As the client sent it; null: it sent none.</param>
/// <param name="Headers">All headers of the request.</param>
/// <param name="Cancellation">Fires when the caller is gone, and when the grace period of a canceled task is over.</param>
public sealed record ServiceCall(string Action, string? MessageId, MessageHeaders Headers, CancellationToken Cancellation);
