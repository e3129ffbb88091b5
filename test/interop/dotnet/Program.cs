using Interop;
using Interop.Telepathy;

// dotnet interop.dll SCENARIO ?WSDL-URL [more]: one line of JSON for each check; status 1 if one failed.
//     proxy URL NAMESPACE    prints the C# that belongs in generated/
// A new scenario is a file with a static method, and a line here.
var report = new Report();
switch (args)
{
    case ["proxy", var url, var name]: Console.Write(ProxyWriter.Write(url, name)); return 0;
    case ["calc", var url]: CalcScenario.Run(report, url); break;
    case ["orders", var url]: OrdersScenario.Run(report, url); break;
    case ["shapes", var url]: ShapesScenario.Run(report, url); break;
    case ["telemetry", var url]: TelemetryScenario.Run(report, url); break;
    case ["three", var url]: ThreeScenario.Run(report, url); break;
    case ["depot", var url]: DepotScenario.Run(report, url); break;
    case ["stored", var url, var clientId]: StoredScenario.Run(report, url, clientId); break;
    case ["desk", var url]: DeskScenario.Run(report, url); break;
    case ["telepathy", var url]: SessionScenario.Run(report, url); FaultScenario.Run(report, url); break;
    case ["durable", var url, var clientId]: DurableScenario.Begin(report, url, clientId); break;
    case ["attach", var url, var sessionId, var clientId]: DurableScenario.Attach(report, url, sessionId, clientId); break;
    case ["kills", var url]: DurableScenario.BrokerKilled(report, url); DurableScenario.HeadKilled(report, url); break;
    case ["plain", var url]: PlainScenario.Run(report, url); RefusalScenario.Run(report, url); break;
    case ["nethttp", var url]: NetHttpScenario.Run(report, url); break;
    case ["tls", var url, var authority, var client, var stranger]: TlsScenario.Run(report, url, authority, client, stranger); break;
    default: Console.Error.WriteLine("usage: interop.dll calc|orders|shapes|telemetry|three|depot|desk WSDL-URL, stored WSDL-URL CLIENT-ID, proxy WSDL-URL NAMESPACE"); return 2;
}
return report.Failed == 0 ? 0 : 1;
