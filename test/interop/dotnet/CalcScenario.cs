using System.ServiceModel;
using Generated.Calc;

namespace Interop;

/// <summary>Every primitive type at its ends, strings that XML could spoil, arrays, one-way and void, over every binding.</summary>
public static class CalcScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<ICalc>(url, most: 5, (binding, calc) =>
        {
            report.Check($"{binding}: numbers", () =>
            {
                Same.Check(-2, calc.Add(int.MinValue, int.MaxValue - 1));
                Same.Check(9_007_199_254_740_993, calc.Big(9_007_199_254_740_993));
                Same.Check(long.MinValue, calc.Big(long.MinValue));
                Same.Check(6m, calc.Sum([1, 2, 3]));
                Same.Check(-7m, calc.Sum([-7]));
                Same.Check(0m, calc.Sum([]));
                Same.Check(0m, calc.Sum(null));
            });
            report.Check($"{binding}: strings", () =>
            {
                foreach (var text in new[] { "plain", "", " ", "  leading and trailing  ", "line\nline", "tab\t", "<a>&amp;]]></a>", "\"quotes'", "日本語 🎈 é", null })
                    Same.Check(text, calc.Echo(text));
            });
            report.Check($"{binding}: primitives", () =>
            {
                foreach (var prims in new[] { Full(), Edges(false), Edges(true), Empty() }) Same.Check(prims, calc.Prims(prims));
                Same.Check(null, calc.Prims(null));
            });
            report.Check($"{binding}: dates", () => Same.Check(new DateTime(2026, 2, 28, 23, 59, 59, 999, DateTimeKind.Utc), calc.Now()));
            report.Check($"{binding}: void", () =>
            {
                calc.Reset(binding);
                Same.Check(true, calc.Echo("resets?").EndsWith(binding, StringComparison.Ordinal));
            });
            report.Check($"{binding}: one-way", () =>
            {
                var id = Guid.NewGuid().ToString();
                calc.Ping(id);
                // Nothing says when a one-way message has been worked on; so it is asked until it has.
                for (var until = DateTime.UtcNow.AddSeconds(30); !calc.Echo("pinged?").Contains(id, StringComparison.Ordinal);)
                    if (DateTime.UtcNow > until) throw new Difference("the service never got it");
            });
        });
        Clients.Each<ICalc>(url, most: 2, (binding, calc) => report.Check($"{binding}: 1 MB in one value, both ways", () =>
        {
            var bytes = new byte[1_000_000];
            new Random(7).NextBytes(bytes);
            Same.Check(Convert.ToBase64String(bytes), Convert.ToBase64String(calc.Prims(new Prims { Bytes = bytes }).Bytes));
        }));
        Clients.Each<ICalc>(url, most: 2, (binding, calc) => report.Check($"{binding}: calls side by side", () =>
        {
            var answers = Task.WhenAll(Enumerable.Range(0, 20).Select(i => Task.Run(() => calc.Add(i, 1000)))).GetAwaiter().GetResult();
            Same.Check(Enumerable.Range(1000, 20).ToArray(), answers);
        }));
    }

    private static Prims Full() => new()
    {
        Bool = true, Byte = 200, Bytes = [0, 1, 255], Char = 'é', Date = new DateTime(2026, 2, 28, 12, 30, 15, 123, DateTimeKind.Utc).AddTicks(4567), Decimal = 1.50m, Double = 0.1, Float = 0.1f,
        Guid = Guid.Parse("0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa"), Int = 7, Long = 9_007_199_254_740_993, MaybeDate = new DateTime(1, 1, 1, 0, 0, 0, DateTimeKind.Unspecified), MaybeInt = 0, SByte = -1, Short = -300,
        Span = TimeSpan.FromTicks(1), Text = "text", UInt = 4_000_000_000, ULong = 18_000_000_000_000_000_000, UShort = 65_000, Uri = new Uri("http://example.com/a%20b?x=1&y=2"),
    };

    private static Prims Edges(bool highest) => highest
        ? new Prims { Bool = true, Byte = byte.MaxValue, Bytes = [], Char = '\uffff', Date = DateTime.MaxValue, Decimal = decimal.MaxValue, Double = double.MaxValue, Float = float.MaxValue, Guid = Guid.Empty, Int = int.MaxValue, Long = long.MaxValue, MaybeDate = DateTime.MaxValue, MaybeInt = int.MaxValue, SByte = sbyte.MaxValue, Short = short.MaxValue, Span = TimeSpan.MaxValue, Text = "", UInt = uint.MaxValue, ULong = ulong.MaxValue, UShort = ushort.MaxValue, Uri = new Uri("relative/path", UriKind.Relative) }
        : new Prims { Byte = byte.MinValue, Bytes = new byte[3], Char = '\0', Date = DateTime.MinValue, Decimal = decimal.MinValue, Double = double.Epsilon, Float = float.NegativeInfinity, Int = int.MinValue, Long = long.MinValue, MaybeInt = int.MinValue, SByte = sbyte.MinValue, Short = short.MinValue, Span = TimeSpan.MinValue, Text = null };

    /// <summary>Every member at its default: nil where it can be.</summary>
    private static Prims Empty() => new() { Double = double.NaN, Float = float.PositiveInfinity, Decimal = 0.0000000000000000000000000001m };
}
