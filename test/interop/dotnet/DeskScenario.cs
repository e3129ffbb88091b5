using System.Globalization;
using System.ServiceModel;
using Generated.Desk;

namespace Interop;

/// <summary>A C# service in the .NET host, through the broker, by a proxy made from the session's ?wsdl.</summary>
public static class DeskScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<ITradeDesk>(url, most: 2, (binding, desk) =>
        {
            report.Check($"{binding}: echo and load, as HPC Pack's sample has them", () =>
            {
                Same.Check($"{Environment.MachineName}:hi", desk.Echo("hi"));
                Same.Check($"{Environment.MachineName}:", desk.Echo(null));
                var load = desk.GenerateLoad(5, new byte[9], null);
                Same.Check(true, load.EndTime - load.StartTime >= TimeSpan.FromMilliseconds(4));
                Same.Check(DateTimeKind.Utc, load.StartTime.Kind);
            });
            report.Check($"{binding}: a trade comes back member by member", () =>
            {
                foreach (var trade in new[] { Full(), Sparse() })
                {
                    var confirmation = desk.Book(trade);
                    Same.Check(trade, confirmation.Trade);
                    Same.Check(true, confirmation.MessageId.StartsWith("urn:uuid:", StringComparison.Ordinal));
                }
                Same.Check("-199.990", desk.Book(Full()).Total.ToString(CultureInfo.InvariantCulture));
            });
            report.Check($"{binding}: a declared fault is typed", () =>
            {
                var fault = Same.Throws<FaultException<TradeRejected>>(() => desk.Book(new Trade { Legs = [new Leg { Price = -1 }], Traded = new DateTime(2026, 2, 2), Settles = new DateTime(2026, 1, 1) }));
                Same.Check(2, fault.Detail.Code);
                Same.Check(new[] { "a trade settles after it was made", "a price is 0 or more" }, fault.Detail.Rules);
                Same.Check("the trade breaks rules", fault.Message);
            });
            report.Check($"{binding}: a dictionary, ref and out", () =>
            {
                var exposure = desk.Exposure([Full(), Full(), Sparse()]);
                Same.Check(new[] { ("A", 399.980m), ("B", 0.0m), ("Z", 0.1m) }, exposure.Select(one => (one.Key, one.Value)).OrderBy(one => one.Key).ToArray());
                var rounding = 2;
                Same.Check(3.33m, desk.Split(10, 3, ref rounding, out var rest));
                Same.Check((3, 0.01m), (rounding, rest));
            });
            report.Check($"{binding}: what the service wants retried is retried, and given up by name", () =>
            {
                Same.Check(3, desk.Flaky(Guid.NewGuid().ToString(), 3));
                var code = Same.Throws<FaultException>(() => desk.Flaky(Guid.NewGuid().ToString(), 99)).Code;
                Same.Check("RetryOperationError", code.SubCode?.Name ?? code.Name); // SOAP 1.1 has no subcode
            });
            report.Check($"{binding}: an exception tells nothing, one-way answers nothing", () =>
            {
                Same.Check(false, Same.Throws<FaultException>(() => desk.Fail("secret")).Message.Contains("secret", StringComparison.Ordinal));
                desk.Note("noted");
            });
        });
    }

    private static Trade Full() => new OptionTrade
    {
        Id = Guid.Parse("0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa"), Side = Side.Sellshort, Counterparty = new Party { Name = "A & B", Country = null },
        Legs = [new Leg { Symbol = "A", Quantity = -1, Price = 199.990m }, new Leg { Symbol = "B", Quantity = long.MaxValue, Price = 0.0m }],
        Traded = new DateTime(2026, 11, 30, 9, 30, 0, DateTimeKind.Utc).AddTicks(7), Settles = new DateTime(2026, 12, 2), Discount = 0.1, Signature = [0, 255], Valid = TimeSpan.FromMinutes(90.5), Strike = 79228162514264337593543950335m,
    };

    private static Trade Sparse() => new() { Side = Side.Buy, Legs = [new Leg { Symbol = "Z", Quantity = 1, Price = 0.1m }] };
}
