using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.ServiceModel;
using System.Threading.Tasks;
using SoaBroker;

namespace Samples.TradeDesk;

/// <summary>One object runs one call at a time, and is used again for later calls; static members are shared by all of this process.</summary>
public sealed class TradeDesk : ITradeDesk
{
    private static readonly ConcurrentDictionary<string, int> Tries = new();
    private static readonly string? TaskId = Environment.GetEnvironmentVariable("CCP_TASKINSTANCEID");

    static TradeDesk() => ServiceContext.OnExiting += (_, _) => ServiceContext.Logger.TraceInformation("the desk closes");

    public string? Echo(string? input) => $"{Environment.MachineName}:{input}";

    public StatisticInfo GenerateLoad(double runMilliSeconds, byte[]? dummyData, string? fileData)
    {
        var start = DateTime.UtcNow;
        var watch = Stopwatch.StartNew();
        while (watch.Elapsed.TotalMilliseconds < runMilliSeconds) ServiceContext.Current?.Cancellation.ThrowIfCancellationRequested();
        return new StatisticInfo { StartTime = start, EndTime = DateTime.UtcNow, TaskId = TaskId };
    }

    public Confirmation Book(Trade trade)
    {
        var broken = Rules(trade).ToArray();
        if (broken.Length > 0) throw new FaultException<TradeRejected>(new TradeRejected { Code = broken.Length, Rules = broken }, "the trade breaks rules");
        return new Confirmation { Trade = trade, Total = Total(trade), BookedBy = $"{TaskId}:{Environment.ProcessId}", MessageId = ServiceContext.Current?.MessageId };
    }

    private static IEnumerable<string> Rules(Trade trade)
    {
        if (trade.Legs is not { Count: > 0 }) yield return "a trade has a leg";
        if (trade.Settles < trade.Traded) yield return "a trade settles after it was made";
        if (trade.Legs?.Any(leg => leg.Price < 0) == true) yield return "a price is 0 or more";
    }

    private static decimal Total(Trade trade) => trade.Legs?.Sum(leg => leg.Quantity * leg.Price) ?? 0;

    public async Task<Dictionary<string, decimal>> ExposureAsync(List<Trade> trades)
    {
        await Task.Yield();
        var legs = trades.SelectMany(trade => (trade.Legs ?? []).Select(leg => (leg.Symbol, Value: leg.Quantity * leg.Price * (trade.Side == Side.Buy ? 1 : -1))));
        return legs.GroupBy(leg => leg.Symbol ?? "").ToDictionary(group => group.Key, group => group.Sum(leg => leg.Value));
    }

    public int Flaky(string request, int tries)
    {
        var tried = Tries.AddOrUpdate(request, 1, (_, before) => before + 1);
        if (tried < tries) throw new FaultException<RetryOperationError>(new RetryOperationError($"try {tried} of {tries}"), "once more");
        return tried;
    }

    public decimal Split(decimal amount, int parts, ref int rounding, out decimal rest)
    {
        var part = Math.Round(amount / parts, rounding, MidpointRounding.ToZero);
        rest = amount - part * parts;
        rounding++;
        return part;
    }

    public void Note(string text) => ServiceContext.Logger.TraceInformation("noted: {0}", text);

    public void Fail(string why) => throw new InvalidOperationException(why);
}
