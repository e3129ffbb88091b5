using System.ServiceModel;
using System.Xml.Serialization;

namespace Interop;

/// <summary>Three namespaces with the same local names, one of them unqualified; two out parameters after the result.</summary>
public static class ThreeScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<IThree>(url, most: 5, (binding, three) => report.Check($"{binding}: each namespace keeps its own", () =>
        {
            var item = new ItemA { Value = 1, Sub = new ItemC { Value = true, Tag = "t" } };
            var other = new ItemB { Value = "two", Code = "c", N = [1, long.MinValue], Sub = item };
            var third = new ItemC { Value = true, Sub = new ItemB { Value = "" }, Tag = "<tag>" };
            var result = three.Mix(item, other, third, out var left, out var right);
            Same.Check(third, result);
            Same.Check(other, left);
            Same.Check(item, right);
            Same.Check(null, three.Mix(null, null, null, out var none, out _));
            Same.Check(null, none);
        }));
    }
}

[ServiceContract(Name = "IThree", Namespace = "urn:three:a"), XmlSerializerFormat]
public interface IThree
{
    [OperationContract(Action = "urn:three:a/IThree/Mix", ReplyAction = "urn:three:a/IThree/MixResponse")]
    ItemC? Mix(ItemA? item, ItemB? other, ItemC? third, out ItemB? left, out ItemA? right);
}

[XmlType("Item", Namespace = "urn:three:a")]
public class ItemA
{
    [XmlElement("value")] public int Value { get; set; }
    [XmlElement("sub")] public ItemC? Sub { get; set; }
}

[XmlType("Item", Namespace = "urn:three:b")]
public class ItemB
{
    [XmlElement("value", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public string Value { get; set; } = "";
    [XmlElement("sub", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public ItemA? Sub { get; set; }
    [XmlElement("n", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public long[]? N { get; set; }
    [XmlAttribute("code")] public string? Code { get; set; }
}

[XmlType("Item", Namespace = "urn:three:c")]
public class ItemC
{
    [XmlElement("value")] public bool Value { get; set; }
    [XmlElement("sub")] public ItemB? Sub { get; set; }
    [XmlElement("tag", Namespace = "urn:three:b")] public string? Tag { get; set; }
}
