using System.Reflection;
using System.Runtime.Loader;
using System.ServiceModel;

namespace SoaBroker.Host;

/// <summary>Finds contract and class in the service's assembly, as HPC Pack's host does.</summary>
public static class ServiceLoader
{
    /// <summary>Throws StartFailure with what is missing and what there is instead.</summary>
    public static (Type Contract, Type Service) Load(Registration registration)
    {
        var path = registration.Assembly;
        if (!File.Exists(path)) throw new StartFailure(StartFailure.AssemblyMissing, $"assembly {path} is not there; was it built?");
        var types = TypesOf(path);
        var contract = FindContract(types, registration);
        return (contract, FindService(types, contract, registration));
    }

    private static Type[] TypesOf(string path)
    {
        try { return new ServiceAssemblies(path).LoadFromAssemblyPath(path).GetTypes(); }
        catch (ReflectionTypeLoadException error)
        {
            throw new StartFailure(StartFailure.TypeLoad, $"types of {path} cannot be loaded: {string.Join("; ", error.LoaderExceptions.Select(one => one?.Message).Distinct())}", error);
        }
        catch (Exception error) when (error is BadImageFormatException or FileLoadException or FileNotFoundException)
        {
            throw new StartFailure(StartFailure.AssemblyLoad, $"assembly {path} cannot be loaded: {error.Message}", error);
        }
    }

    private static Type FindContract(Type[] types, Registration registration)
    {
        var contracts = types.Where(IsContract).OrderByDescending(type => type.IsInterface).ToList();
        // HPC Pack's files give the full name. Where they name a portType, as files for other hosts do, the name alone is enough.
        var found = registration.Contract == "" ? contracts.FirstOrDefault()
            : contracts.Find(type => type.FullName == registration.Contract) ?? contracts.Find(type => type.Name == registration.Contract || WireName(type) == registration.Contract);
        return found ?? throw new StartFailure(StartFailure.ContractDiscovery,
            $"{registration.Assembly} has no [ServiceContract]{(registration.Contract == "" ? "" : $" {registration.Contract}")}; it has {List(contracts)}");
    }

    private static bool IsContract(Type type)
    {
        try { return type.IsDefined(typeof(ServiceContractAttribute), inherit: false); }
        catch (TypeLoadException) { return false; } // classes compiled for .NET Framework have [ServiceBehavior], which .NET has not
    }

    private static string? WireName(Type contract) => contract.GetCustomAttribute<ServiceContractAttribute>()?.Name;

    private static Type FindService(Type[] types, Type contract, Registration registration)
    {
        var candidates = types.Where(type => type is { IsClass: true, IsAbstract: false, ContainsGenericParameters: false } && contract.IsAssignableFrom(type)).ToList();
        if (registration.Type != "" && types.FirstOrDefault(type => type.FullName == registration.Type || type.Name == registration.Type) is not { } named)
            throw new StartFailure(StartFailure.TypeDiscovery, $"{registration.Assembly} has no type {registration.Type}; what implements {contract.FullName} is {List(candidates)}");
        var service = registration.Type == "" ? candidates.FirstOrDefault()
            : candidates.Find(type => type.FullName == registration.Type) ?? candidates.Find(type => type.Name == registration.Type);
        if (service is null)
            throw new StartFailure(StartFailure.ContractNotImplemented, $"{(registration.Type == "" ? $"nothing in {registration.Assembly}" : registration.Type)} implements {contract.FullName}");
        return service.GetConstructor(Type.EmptyTypes) is null
            ? throw new StartFailure(StartFailure.TypeLoad, $"{service.FullName} has no public constructor without parameters") : service;
    }

    private static string List(IReadOnlyCollection<Type> types) => types.Count == 0 ? "none" : string.Join(", ", types.Select(type => type.FullName));
}

/// <summary>The service's own dependencies, by its .deps.json or beside its assembly; what both sides must see as one type comes from the host.</summary>
internal sealed class ServiceAssemblies(string path) : AssemblyLoadContext(Path.GetFileNameWithoutExtension(path))
{
    private static readonly HashSet<string> Shared = ["SoaBroker.Service", "System.ServiceModel", "System.ServiceModel.Primitives", "System.ServiceModel.Duplex", "System.ServiceModel.Security"];
    private readonly AssemblyDependencyResolver resolver = new(path);

    protected override Assembly? Load(AssemblyName name)
    {
        if (Shared.Contains(name.Name!)) return null;
        var beside = Path.Combine(Path.GetDirectoryName(path)!, name.Name + ".dll");
        var found = resolver.ResolveAssemblyToPath(name) ?? (File.Exists(beside) ? beside : null);
        return found is null ? null : LoadFromAssemblyPath(found);
    }

    protected override nint LoadUnmanagedDll(string name) => resolver.ResolveUnmanagedDllToPath(name) is { } found ? LoadUnmanagedDllFromPath(found) : 0;
}
