using System.Collections;
using System.Globalization;
using System.Reflection;
using System.Text.Json;

namespace Interop;

/// <summary>What a scenario found: one line of JSON for each check, `{"check":…,"ok":true}` or `{"check":…,"ok":false,"why":…}`.</summary>
public sealed class Report
{
    public int Failed { get; private set; }

    public void Check(string name, Action act)
    {
        string? why = null;
        try { act(); } catch (Exception error) { why = error is Difference ? error.Message : error.ToString(); Failed++; }
        Say(why is null ? new { check = name, ok = true } : new { check = name, ok = false, why });
    }

    public static void Say(object line) => Console.WriteLine(JsonSerializer.Serialize(line));
}

public sealed class Difference(string what) : Exception(what);

/// <summary>Compares member by member; a difference is named by its path.</summary>
public static class Same
{
    public static void Check(object? expected, object? actual) => Check(expected, actual, "");

    public static T Throws<T>(Action act) where T : Exception
    {
        try { act(); } catch (T error) { return error; } catch (Exception error) { throw new Difference($"threw {error.GetType().Name}, not {typeof(T).Name}: {error.Message}"); }
        throw new Difference($"did not throw {typeof(T).Name}");
    }

    private static void Check(object? expected, object? actual, string at)
    {
        Difference No() => new($"{(at == "" ? "/" : at)}: expected {Text(expected)}, found {Text(actual)}");
        if (expected is null || actual is null) { if (expected != actual) throw No(); return; }
        if (expected.GetType() != actual.GetType()) throw new Difference($"{at}: expected a {expected.GetType()}, found a {actual.GetType()}");
        switch (expected)
        {
            // Kinds too: a time that becomes local or loses its zone is another one.
            case DateTime time: if (time != (DateTime)actual || time.Kind != ((DateTime)actual).Kind) throw No(); return;
            case decimal number: if (number.ToString(CultureInfo.InvariantCulture) != ((decimal)actual).ToString(CultureInfo.InvariantCulture)) throw No(); return; // 1.50 is not 1.5
            case string or ValueType or Uri: if (!expected.Equals(actual)) throw No(); return;
            case IEnumerable items:
                var (left, right) = (items.Cast<object?>().ToArray(), ((IEnumerable)actual).Cast<object?>().ToArray());
                if (left.Length != right.Length) throw new Difference($"{at}: expected {left.Length} items, found {right.Length}");
                for (var i = 0; i < left.Length; i++) Check(left[i], right[i], $"{at}[{i}]");
                return;
        }
        foreach (var property in expected.GetType().GetProperties(BindingFlags.Public | BindingFlags.Instance).Where(one => one.Name != "ExtensionData"))
            Check(property.GetValue(expected), property.GetValue(actual), $"{at}/{property.Name}");
        foreach (var field in expected.GetType().GetFields(BindingFlags.Public | BindingFlags.Instance))
            Check(field.GetValue(expected), field.GetValue(actual), $"{at}/{field.Name}");
    }

    private static readonly JsonSerializerOptions Fields = new() { IncludeFields = true };

    private static string Text(object? value) => value is null ? "null" : JsonSerializer.Serialize(value, value.GetType(), Fields);
}
