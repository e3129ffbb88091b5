using System.Collections.Concurrent;

namespace SoaBroker.Host;

/// <summary>
/// Objects of the service's class. One object never runs two calls at a time, and is used again: what HPC Pack's users know from an instance per connection
/// (WCF's PerSession with ConcurrencyMode.Single). So there are as many as calls were ever in progress at once.
/// </summary>
public sealed class InstancePool : IDisposable
{
    private readonly ConcurrentBag<object> free = [];
    private readonly Func<object> create;

    /// <summary>Makes the first one at once: a constructor that fails must keep the host from being ready.</summary>
    public InstancePool(Func<object> create)
    {
        this.create = create;
        free.Add(create());
    }

    public object Take() => free.TryTake(out var one) ? one : create();

    public void GiveBack(object one) => free.Add(one);

    public void Dispose()
    {
        while (free.TryTake(out var one)) (one as IDisposable)?.Dispose();
    }
}
