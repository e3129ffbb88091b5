using System.Runtime.Serialization;
using System.Xml;
using System.Xml.Schema;
using System.Xml.Serialization;

namespace SoaBroker.Host;

/// <summary>The schemas of a contract: wrappers as WCF publishes them, types by the serializers' own exporters. One schema for each namespace.</summary>
public sealed class ContractSchemas
{
    private readonly XsdDataContractExporter exporter = new();
    private readonly SortedDictionary<string, XmlSchema> schemas = new(StringComparer.Ordinal);

    public ContractSchemas(ServiceContract contract)
    {
        var bodies = contract.Operations.SelectMany(operation => operation.Reply is null ? [operation.Request] : new[] { operation.Request, operation.Reply }).ToList();
        var types = bodies.OfType<DataContractBody>().SelectMany(body => body.Parts).Select(part => part.Type)
            .Concat(contract.Operations.SelectMany(operation => operation.KnownTypes.Concat(operation.Faults.Select(fault => fault.Type)))).Distinct().ToList();
        try { exporter.Export(types); }
        catch (Exception error) when (error is InvalidDataContractException or NotSupportedException) { throw new StartFailure(StartFailure.ContractDiscovery, $"no schema for the types of {contract.Name}: {error.Message}", error); }
        foreach (XmlSchema schema in exporter.Schemas.Schemas()) Merge(schema);
        foreach (var body in bodies.OfType<DataContractBody>()) Add(body);
        AddXmlSerializers(bodies.OfType<XmlSerializerBody>());
        foreach (var fault in contract.Operations.SelectMany(operation => operation.Faults)) AddNamed(fault);
    }

    /// <summary>Without XML Schema's own, which the exporter lists for DataSet.</summary>
    public IEnumerable<XmlSchema> All => schemas.Values.Where(schema => schema.Items.Count > 0 && schema.TargetNamespace != XmlSchema.Namespace);

    /// <summary>The element in the detail of a fault.</summary>
    public XmlQualifiedName ElementOf(DeclaredFault fault) => fault.Element is var (name, ns) ? new XmlQualifiedName(name, ns) : exporter.GetRootElementName(fault.Type)!;

    /// <summary>A wrapper: every part may be absent; what can be null in .NET can be nil.</summary>
    private void Add(DataContractBody body)
    {
        var sequence = new XmlSchemaSequence();
        foreach (var part in body.Parts)
        {
            var element = new XmlSchemaElement { Name = part.Name, MinOccurs = 0, IsNillable = IsNullable(part.Type) };
            if (part.Namespace != body.WrapperNamespace) throw new StartFailure(StartFailure.ContractDiscovery, $"{body.Wrapper}/{part.Name} has a namespace of its own, {part.Namespace}, which no schema for its wrapper can say");
            Type(element, part.Type);
            sequence.Items.Add(element);
        }
        AddElement(body.WrapperNamespace, new XmlSchemaElement { Name = body.Wrapper, SchemaType = new XmlSchemaComplexType { Particle = sequence } }, sequence.Items.OfType<XmlSchemaElement>().Select(element => element.SchemaTypeName.Namespace));
    }

    private void AddNamed(DeclaredFault fault)
    {
        if (fault.Element is not var (name, ns)) return;
        var element = new XmlSchemaElement { Name = name, IsNillable = IsNullable(fault.Type) };
        Type(element, fault.Type);
        AddElement(ns, element, [element.SchemaTypeName.Namespace]);
    }

    /// <summary>A type without a name of its own (of an [XmlSchemaProvider]) stands inside its element.</summary>
    private void Type(XmlSchemaElement element, Type type)
    {
        if (exporter.GetSchemaType(type) is { Name: null } inside) element.SchemaType = inside;
        else element.SchemaTypeName = exporter.GetSchemaTypeName(type);
    }

    private void AddElement(string ns, XmlSchemaElement element, IEnumerable<string> uses)
    {
        var schema = Of(ns);
        // Two operations may share a wrapper or a fault: it is written once.
        if (schema.Items.OfType<XmlSchemaElement>().Any(one => one.Name == element.Name)) return;
        schema.Items.Add(element);
        foreach (var used in uses) Import(schema, used);
    }

    private void AddXmlSerializers(IEnumerable<XmlSerializerBody> bodies)
    {
        var all = new XmlSchemas();
        var xml = new XmlSchemaExporter(all);
        foreach (var body in bodies) xml.ExportMembersMapping(body.Mapping);
        foreach (XmlSchema schema in all) Merge(schema);
    }

    private XmlSchema Of(string ns)
    {
        if (!schemas.TryGetValue(ns, out var schema)) schemas[ns] = schema = new XmlSchema { TargetNamespace = ns, ElementFormDefault = XmlSchemaForm.Qualified };
        return schema;
    }

    private void Merge(XmlSchema from)
    {
        if (!schemas.TryGetValue(from.TargetNamespace ?? "", out var into)) { schemas[from.TargetNamespace ?? ""] = from; return; }
        foreach (var item in from.Items) into.Items.Add(item);
        foreach (XmlSchemaExternal one in from.Includes) if (one is XmlSchemaImport { Namespace: { } ns }) Import(into, ns);
    }

    private static void Import(XmlSchema schema, string ns)
    {
        if (ns is "" or XmlSchema.Namespace || ns == schema.TargetNamespace || schema.Includes.OfType<XmlSchemaImport>().Any(one => one.Namespace == ns)) return;
        schema.Includes.Add(new XmlSchemaImport { Namespace = ns });
    }

    private static bool IsNullable(Type type) => !type.IsValueType || Nullable.GetUnderlyingType(type) is not null;
}
