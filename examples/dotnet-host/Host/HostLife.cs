namespace SoaBroker.Host;

/// <summary>
/// When the host ends, and with which exit code: 0 after SIGTERM (calls in progress may finish within the grace period) and when it was idle too long,
/// 253 (HPC Pack's -3) when a call hangs. Counts the calls for that.
/// </summary>
public sealed class HostLife(HostSettings settings, Action<string> log)
{
    public const int Hung = 253;
    private readonly Lock gate = new();
    private readonly TaskCompletionSource<int> over = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource idle = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly CancellationTokenSource cut = new();
    private int running;
    private Timer? idleTimer, hangTimer;

    /// <summary>Fires when the grace period is over.</summary>
    public CancellationToken Cut => cut.Token;
    /// <summary>Completes with the exit code.</summary>
    public Task<int> Over => over.Task;
    public bool IsEnding { get; private set; }
    public int Running { get { lock (gate) return running; } }

    /// <summary>False: the host is ending and takes no more.</summary>
    public bool TryBegin()
    {
        lock (gate)
        {
            if (IsEnding) return false;
            running++;
            Arm(ref idleTimer, null, () => { });
            ArmHang();
            return true;
        }
    }

    public void End()
    {
        lock (gate)
        {
            running--;
            ArmHang();
            if (running > 0) return;
            // The clock starts only after the first call: a host that never gets work never idles out (HPC Pack's rule).
            Arm(ref idleTimer, settings.Idle, () => { log($"no call for {settings.Idle}: the host ends"); over.TrySetResult(0); });
            if (IsEnding) idle.TrySetResult();
        }
    }

    /// <summary>Takes no more calls, lets the service know, waits for those in progress. Once.</summary>
    public async Task EndGracefullyAsync()
    {
        lock (gate)
        {
            if (IsEnding) return;
            IsEnding = true;
            if (running == 0) idle.TrySetResult();
        }
        ServiceContext.RaiseExiting(error => log($"a handler of OnExiting threw: {error}"));
        if (await Task.WhenAny(idle.Task, Task.Delay(settings.Grace)) != idle.Task) log($"{Running} calls were still in progress {settings.Grace.TotalSeconds} s after SIGTERM and are cut");
        await cut.CancelAsync();
        over.TrySetResult(0);
    }

    private void ArmHang() => Arm(ref hangTimer, running > 0 ? settings.Hang : null, () =>
    {
        log($"{Running} calls have made no progress for {settings.Hang} (serviceHangTimeout): the host ends");
        over.TrySetResult(Hung);
    });

    private static void Arm(ref Timer? timer, TimeSpan? due, Action act)
    {
        timer?.Dispose();
        timer = due is { } time ? new Timer(_ => act(), null, time, Timeout.InfiniteTimeSpan) : null;
    }
}
