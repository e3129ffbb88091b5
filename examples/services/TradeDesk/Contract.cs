using System;
using System.Collections.Generic;
using System.Runtime.Serialization;
using System.ServiceModel;
using System.Threading.Tasks;

namespace Samples.TradeDesk;

/// <summary>HPC Pack's echo service, and what services of the field have beside it: nested data contracts, a declared fault, an asynchronous and a one-way operation.</summary>
[ServiceContract(Namespace = "urn:soa-broker:trade-desk")]
public interface ITradeDesk
{
    /// <summary>Answers "machine:input".</summary>
    [OperationContract]
    string? Echo(string? input);

    /// <summary>Keeps a processor busy (not asleep) for so long.</summary>
    [OperationContract]
    StatisticInfo GenerateLoad(double runMilliSeconds, byte[]? dummyData, string? fileData);

    /// <summary>Books a trade; one that cannot be booked is refused with the rules that it breaks.</summary>
    [OperationContract, FaultContract(typeof(TradeRejected))]
    Confirmation Book(Trade trade);

    /// <summary>What the trades come to, by symbol.</summary>
    [OperationContract]
    Task<Dictionary<string, decimal>> ExposureAsync(List<Trade> trades);

    /// <summary>Fails until the request has been tried so often, then answers how many tries it was. Asks the broker for the next try.</summary>
    [OperationContract]
    int Flaky(string request, int tries);

    /// <summary>Splits an amount: a result, an out and a ref parameter.</summary>
    [OperationContract]
    decimal Split(decimal amount, int parts, ref int rounding, out decimal rest);

    [OperationContract(IsOneWay = true)]
    void Note(string text);

    /// <summary>Throws what is no fault of the contract.</summary>
    [OperationContract]
    void Fail(string why);
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public enum Side
{
    [EnumMember] Buy,
    [EnumMember] Sell,
    [EnumMember(Value = "Sell short")] SellShort,
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class Party
{
    [DataMember(IsRequired = true)] public string Name { get; set; } = "";
    [DataMember] public string? Country { get; set; }
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class Leg
{
    [DataMember] public string? Symbol { get; set; }
    [DataMember] public long Quantity { get; set; }
    [DataMember] public decimal Price { get; set; }
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
[KnownType(typeof(OptionTrade))]
public class Trade
{
    [DataMember(Order = 0)] public Guid Id { get; set; }
    [DataMember(Order = 1)] public Side Side { get; set; }
    [DataMember(Order = 2)] public Party? Counterparty { get; set; }
    [DataMember(Order = 3)] public List<Leg>? Legs { get; set; }
    [DataMember(Order = 4)] public DateTime Traded { get; set; }
    [DataMember(Order = 5)] public DateTime? Settles { get; set; }
    [DataMember(Order = 6)] public double? Discount { get; set; }
    [DataMember(Order = 7)] public byte[]? Signature { get; set; }
    [DataMember(Order = 8)] public TimeSpan Valid { get; set; }
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class OptionTrade : Trade
{
    [DataMember] public decimal Strike { get; set; }
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class Confirmation
{
    [DataMember] public Trade? Trade { get; set; }
    [DataMember] public decimal Total { get; set; }
    /// <summary>Which service instance booked it.</summary>
    [DataMember] public string? BookedBy { get; set; }
    [DataMember] public string? MessageId { get; set; }
}

[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class TradeRejected
{
    [DataMember] public int Code { get; set; }
    [DataMember] public string[]? Rules { get; set; }
}

/// <summary>HPC Pack's echo service answers with it.</summary>
[DataContract(Namespace = "urn:soa-broker:trade-desk:types")]
public class StatisticInfo
{
    [DataMember] public DateTime StartTime { get; set; }
    [DataMember] public DateTime EndTime { get; set; }
    [DataMember] public string? TaskId { get; set; }
}
