using System.Globalization;
using System.Text.RegularExpressions;
using System.Xml;
using System.Xml.Linq;

namespace SoaBroker.Host;

/// <summary>What this host needs of HPC Pack's registration file.</summary>
/// <param name="Assembly">Absolute path of the service's .dll.</param>
/// <param name="Contract">Full name of the contract; empty: the first one of the assembly.</param>
/// <param name="Type">Full name of the class; empty: the first one that implements the contract.</param>
/// <param name="MaxConcurrentCalls">0: as many as the task has cores.</param>
public sealed partial record Registration(string Name, string Assembly, string Contract, string Type, bool IncludeExceptionDetailInFaults, int MaxConcurrentCalls)
{
    private const string Path = "configuration/microsoft.Hpc.Session.ServiceRegistration/service";

    /// <summary>Environment variables are expanded in `assembly` alone; a relative path is relative to the file.</summary>
    public static Registration Read(string file)
    {
        if (!File.Exists(file)) throw new StartFailure(StartFailure.RegistrationMissing, $"registration file {file} is not there");
        var service = Load(file).Root?.Element("microsoft.Hpc.Session.ServiceRegistration")?.Element("service")
            ?? throw new StartFailure(StartFailure.BadRegistration, $"{file} has no {Path}");
        var assembly = Text(service, "assembly");
        if (assembly == "") throw new StartFailure(StartFailure.NoAssemblyName, $"{file}: {Path}/@assembly is missing: the path of the service's .dll");
        return new Registration(
            System.IO.Path.GetFileNameWithoutExtension(file),
            System.IO.Path.GetFullPath(Expand(assembly).Replace('\\', '/'), System.IO.Path.GetDirectoryName(System.IO.Path.GetFullPath(file))!),
            Text(service, "contract"),
            Text(service, "type"),
            Parse(file, service, "includeExceptionDetailInFaults", false, (string text, out bool value) => bool.TryParse(text, out value), "true or false"),
            Parse(file, service, "maxConcurrentCalls", 0, (string text, out int value) => int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out value), "a whole number from 0"));
    }

    private static XDocument Load(string file)
    {
        try
        {
            using var reader = XmlReader.Create(file, new XmlReaderSettings { DtdProcessing = DtdProcessing.Prohibit });
            return XDocument.Load(reader);
        }
        catch (XmlException error) { throw new StartFailure(StartFailure.BadRegistration, $"{file} is no well-formed XML: {error.Message}", error); }
    }

    private static string Text(XElement element, string name) => element.Attribute(name)?.Value.Trim() ?? "";

    private delegate bool TryParse<T>(string text, out T value);

    private static T Parse<T>(string file, XElement service, string name, T absent, TryParse<T> tryParse, string expected)
    {
        var text = Text(service, name);
        if (text == "") return absent;
        return tryParse(text, out var value) ? value : throw new StartFailure(StartFailure.BadRegistration, $"{file}: {Path}/@{name} is \"{text}\", expected: {expected}");
    }

    private static string Expand(string text) => Variable().Replace(text, match => Environment.GetEnvironmentVariable(match.Groups["name"].Value) ?? match.Value);

    [GeneratedRegex(@"%(?<name>\w+)%|\$\{(?<name>\w+)\}|\$(?<name>\w+)")]
    private static partial Regex Variable();
}
