namespace Interop.Telepathy;

/// <summary>Asks the test that started this program for what only it can do, and waits until it is done: a line of JSON out, a line in.</summary>
public static class Director
{
    public static string Ask(string what, string sessionId = "")
    {
        Report.Say(new { ask = what, sessionId });
        return Console.ReadLine() ?? throw new InvalidOperationException($"nobody does {what}");
    }
}
