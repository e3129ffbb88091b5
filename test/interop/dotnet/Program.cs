using Interop;

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
    case ["stored", var url, var clientId]: StoredScenario.Run(report, url, clientId); break;
    case ["desk", var url]: DeskScenario.Run(report, url); break;
    default: Console.Error.WriteLine("usage: interop.dll calc|orders|shapes|telemetry|three|desk WSDL-URL, stored WSDL-URL CLIENT-ID, proxy WSDL-URL NAMESPACE"); return 2;
}
return report.Failed == 0 ? 0 : 1;
