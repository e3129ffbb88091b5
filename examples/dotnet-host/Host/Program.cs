using System.Net;
using System.Runtime.InteropServices;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using SoaBroker.Host;

// The .NET service host: serves what `assembly`, `contract` and `type` of an HPC Pack registration file name, on the address in SOA_LISTEN_URL.
//
//     dotnet dotnet-host.dll [FILE.config]         FILE: default CCP_SERVICE_CONFIG_FILENAME, which the node manager sets
//     dotnet dotnet-host.dll FILE.config --wsdl    prints the contract's WSDL, which belongs beside FILE
const string Usage = "usage: dotnet dotnet-host.dll [FILE.config] [--wsdl]";
void Log(string line) => Console.Error.WriteLine(line);

try
{
    var unknown = args.FirstOrDefault(arg => arg.StartsWith('-') && arg != "--wsdl");
    var files = args.Where(arg => arg != "--wsdl").ToArray();
    if (unknown is not null || files.Length > 1) throw new StartFailure(StartFailure.BadCommandLine, $"{(unknown is null ? "more than one file" : $"unknown option {unknown}")}\n{Usage}");
    var file = files.FirstOrDefault() ?? Environment.GetEnvironmentVariable("CCP_SERVICE_CONFIG_FILENAME")
        ?? throw new StartFailure(StartFailure.NoConfigName, $"no registration file: CCP_SERVICE_CONFIG_FILENAME is not set\n{Usage}");
    var registration = Registration.Read(file);
    var (contractType, serviceType) = ServiceLoader.Load(registration);
    var contract = new ServiceContract(contractType);
    var wsdl = new Wsdl(contract); // also when it serves: a type that cannot be serialized is found now, not by the first call
    if (args.Contains("--wsdl"))
    {
        using var output = Console.OpenStandardOutput();
        output.Write(System.Text.Encoding.UTF8.GetBytes(wsdl.Write(registration.Name, $"http://localhost:8080/{registration.Name}")));
        return 0;
    }
    return await Serve(registration, contract, wsdl, serviceType, HostSettings.FromEnvironment());
}
catch (StartFailure failure)
{
    Log($"dotnet-host: {failure.Message}");
    return failure.ExitCode;
}
catch (Exception error)
{
    Log($"dotnet-host: {error}");
    return StartFailure.Unexpected;
}

async Task<int> Serve(Registration registration, ServiceContract contract, Wsdl wsdl, Type serviceType, HostSettings settings)
{
    using var instances = new InstancePool(() => Activator.CreateInstance(serviceType)!);
    var life = new HostLife(settings, Log);
    var endpoint = new ServiceEndpoint(contract, wsdl, instances, life, settings, registration, Log);

    var builder = WebApplication.CreateSlimBuilder();
    builder.Logging.ClearProviders(); // what there is to say is said by Log
    builder.Services.AddSingleton<IHostLifetime, NoLifetime>();
    builder.WebHost.ConfigureKestrel(kestrel =>
    {
        kestrel.AddServerHeader = false;
        if (settings.ListenUrl.HostNameType is UriHostNameType.IPv4 or UriHostNameType.IPv6) kestrel.Listen(IPAddress.Parse(settings.ListenUrl.DnsSafeHost), settings.ListenUrl.Port);
        else foreach (var address in Dns.GetHostAddresses(settings.ListenUrl.DnsSafeHost)) kestrel.Listen(address, settings.ListenUrl.Port);
    });
    await using var app = builder.Build();
    app.Run(endpoint.HandleAsync);

    using var term = PosixSignalRegistration.Create(PosixSignal.SIGTERM, signal => { signal.Cancel = true; _ = life.EndGracefullyAsync(); });
    using var interrupt = PosixSignalRegistration.Create(PosixSignal.SIGINT, signal => { signal.Cancel = true; _ = life.EndGracefullyAsync(); });
    try { await app.StartAsync(); }
    catch (IOException error) when (error.InnerException is AddressInUseException) { throw new StartFailure(StartFailure.AddressInUse, $"{settings.ListenUrl} is taken", error); }

    var exitCode = await life.Over;
    if (exitCode == HostLife.Hung) Environment.Exit(exitCode); // a call that hangs would be waited for
    using var last = new CancellationTokenSource(TimeSpan.FromSeconds(2)); // for replies that are being written
    await app.StopAsync(last.Token);
    return exitCode;
}

/// <summary>ASP.NET's own would close the listener on SIGTERM; here calls that come after it are answered with Service_Preempted.</summary>
internal sealed class NoLifetime : IHostLifetime
{
    public Task WaitForStartAsync(CancellationToken cancellationToken) => Task.CompletedTask;
    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
}
