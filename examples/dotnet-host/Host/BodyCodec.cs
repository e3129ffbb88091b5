using System.Reflection;
using System.Runtime.Serialization;
using System.ServiceModel.Description;
using System.Xml;
using System.Xml.Serialization;

namespace SoaBroker.Host;

/// <summary>One element inside a wrapper: a parameter or a result.</summary>
/// <param name="Source">Where the attributes of [XmlSerializerFormat] stand: the parameter, or the method's result.</param>
public sealed record Part(string Name, string Namespace, Type Type, ICustomAttributeProvider Source);

/// <summary>Values ⇄ one wrapper element, document/literal, as WCF writes and reads it.</summary>
public abstract class BodyCodec(string wrapper, string wrapperNamespace, IReadOnlyList<Part> parts)
{
    public string Wrapper { get; } = wrapper;
    public string WrapperNamespace { get; } = wrapperNamespace;
    public IReadOnlyList<Part> Parts { get; } = parts;

    /// <summary>One value for each part; what is absent has its type's default. Throws BodyException when the wrapper or a value is wrong.</summary>
    public object?[] Read(XmlDictionaryReader reader)
    {
        if (!reader.IsStartElement(Wrapper, WrapperNamespace))
            throw new BodyException($"the body is {{{reader.NamespaceURI}}}{reader.LocalName}, expected: {{{WrapperNamespace}}}{Wrapper}");
        return ReadWrapper(reader);
    }

    protected abstract object?[] ReadWrapper(XmlDictionaryReader reader);
    public abstract void Write(XmlDictionaryWriter writer, object?[] values);

    protected static object? DefaultOf(Type type) => type.IsValueType ? Activator.CreateInstance(type) : null;
}

public sealed class BodyException(string why, Exception? cause = null) : Exception(why, cause);

/// <summary>The default: each part by DataContractSerializer, named by the part.</summary>
public sealed class DataContractBody : BodyCodec
{
    private readonly DataContractSerializer[] serializers;

    public DataContractBody(string wrapper, string ns, IReadOnlyList<Part> parts, IEnumerable<Type> knownTypes) : base(wrapper, ns, parts)
    {
        var known = knownTypes.ToArray();
        serializers = [.. parts.Select(part => new DataContractSerializer(part.Type, part.Name, part.Namespace, known))];
    }

    /// <summary>Walks forward only: WCF takes an element that is unknown, or comes too late, for one that it need not know.</summary>
    protected override object?[] ReadWrapper(XmlDictionaryReader reader)
    {
        object?[] values = [.. Parts.Select(part => DefaultOf(part.Type))];
        var isEmpty = reader.IsEmptyElement;
        reader.ReadStartElement();
        if (isEmpty) return values;
        for (var next = 0; reader.MoveToContent() == XmlNodeType.Element;)
        {
            var at = next;
            while (at < Parts.Count && !reader.IsStartElement(Parts[at].Name, Parts[at].Namespace)) at++;
            if (at == Parts.Count) { reader.Skip(); continue; }
            try { values[at] = serializers[at].ReadObject(reader, verifyObjectName: false); }
            catch (Exception error) when (error is SerializationException or FormatException or InvalidCastException or OverflowException or XmlException)
            {
                throw new BodyException($"/{Wrapper}/{Parts[at].Name}: {error.Message}", error);
            }
            next = at + 1;
        }
        return values;
    }

    public override void Write(XmlDictionaryWriter writer, object?[] values)
    {
        writer.WriteStartElement(null, Wrapper, WrapperNamespace);
        for (var i = 0; i < values.Length; i++) serializers[i].WriteObject(writer, values[i]);
        writer.WriteEndElement();
    }
}

/// <summary>For [XmlSerializerFormat]: the wrapper and all in it by one XmlSerializer.</summary>
public sealed class XmlSerializerBody : BodyCodec
{
    private readonly XmlSerializer serializer;

    /// <param name="importer">One for a contract: its types are written to the schema once, however many operations use them.</param>
    public XmlSerializerBody(string wrapper, string ns, IReadOnlyList<Part> parts, XmlReflectionImporter importer) : base(wrapper, ns, parts)
    {
        var members = parts.Select(part => new XmlReflectionMember { MemberName = part.Name, MemberType = part.Type, XmlAttributes = new XmlAttributes(part.Source) });
        Mapping = importer.ImportMembersMapping(wrapper, ns, [.. members], hasWrapperElement: true);
        serializer = XmlSerializer.FromMappings([Mapping])[0]!;
    }

    /// <summary>For the schema.</summary>
    public XmlMembersMapping Mapping { get; }

    protected override object?[] ReadWrapper(XmlDictionaryReader reader)
    {
        try { return (object?[])serializer.Deserialize(reader)!; }
        catch (InvalidOperationException error) { throw new BodyException($"/{Wrapper}: {error.InnerException?.Message ?? error.Message}", error); }
    }

    public override void Write(XmlDictionaryWriter writer, object?[] values) => serializer.Serialize(writer, values);
}
