using System.ServiceModel;
using System.Xml.Schema;
using System.Xml.Serialization;

namespace Interop;

/// <summary>rpc/literal: each parameter a part, the result the part "return". Types as JAX-WS has them, unqualified; written by hand, as no tool for that runs here.</summary>
public static class DepotScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<IDepot>(url, most: 5, (binding, depot) =>
        {
            report.Check($"{binding}: simple parts", () => Same.Check(42, depot.Add(2, 40)));
            report.Check($"{binding}: a complex part, and two parts back", () =>
            {
                var order = new DepotOrder { Id = long.MaxValue, Customer = "Größe", Lines = [new() { Sku = "a & b", Quantity = 2, Price = 0.10m }, null, new() { Sku = "c", Quantity = 1 }] };
                var receipt = depot.Place(order, true, out var total);
                Same.Check(new DepotReceipt { OrderId = long.MaxValue, At = new DateTime(2026, 11, 30, 10, 11, 12, DateTimeKind.Utc).AddTicks(1_234_567), Remark = "for Größe: a & b & c" }, receipt);
                Same.Check(5.20m, total);
            });
            report.Check($"{binding}: an array", () =>
            {
                Same.Check((long)int.MaxValue * 2, depot.Sum(new IntArray { Item = [int.MaxValue, int.MaxValue] }));
                Same.Check(0L, depot.Sum(new IntArray()));
            });
            report.Check($"{binding}: one way, then a call without parts", () =>
            {
                depot.Note("<line>", DepotLevel.HIGH);
                var stock = depot.Stock();
                Same.Check(DepotLevel.HIGH, stock.Level);
                Same.Check(new[] { "bolt", null }, stock.Items!.Select(one => one.Sku).ToArray());
            });
            report.Check($"{binding}: an empty reply", () => depot.Touch("k"));
            report.Check($"{binding}: derived types both ways", () => Same.Check(new DepotSquare { Label = "s", Side = 3 }, (DepotSquare)depot.Grow(new DepotSquare { Label = "s", Side = 2 }, 1.5)));
            report.Check($"{binding}: a declared fault has its detail, another tells nothing", () =>
            {
                var fault = Same.Throws<FaultException>(() => depot.Place(new DepotOrder { Id = 5, Customer = "C" }, false, out _)).CreateMessageFault();
                // With style rpc .NET takes no fault contract of an XML type: "the wrapper element has to be unqualified".
                Same.Check(new BadOrder { Code = 7, Message = "C" }, (BadOrder)new XmlSerializer(typeof(BadOrder)).Deserialize(fault.GetReaderAtDetailContents())!);
                Same.Check("order 5 is empty", fault.Reason.GetMatchingTranslation().Text);
                var bug = Same.Throws<FaultException>(() => depot.Touch("nothing"));
                Same.Check("InternalServiceFault", bug.Code.SubCode?.Name ?? bug.Code.Name);
            });
            report.Check($"{binding}: a part that is null is left out, and named in the fault", () =>
                Same.Check(true, Same.Throws<FaultException>(() => depot.Touch(null)).Message.Contains("at /touch: element key is missing", StringComparison.Ordinal)));
        });
    }
}

[ServiceContract(Name = "IDepot", Namespace = "urn:depot"), XmlSerializerFormat(Style = OperationFormatStyle.Rpc)]
[ServiceKnownType(typeof(DepotSquare))]
public interface IDepot
{
    [OperationContract(Name = "add", Action = "urn:depot:IDepot:addRequest", ReplyAction = "*")]
    [return: MessageParameter(Name = "return")]
    int Add([MessageParameter(Name = "a")] int a, [MessageParameter(Name = "b")] int b);

    [OperationContract(Name = "place", Action = "urn:depot/place", ReplyAction = "*")]
    [return: MessageParameter(Name = "receipt")]
    DepotReceipt Place([MessageParameter(Name = "order")] DepotOrder order, [MessageParameter(Name = "rush")] bool rush, [MessageParameter(Name = "total")] out decimal total);

    [OperationContract(Name = "sum", Action = "urn:depot:IDepot:sumRequest", ReplyAction = "*")]
    [return: MessageParameter(Name = "return")]
    long Sum([MessageParameter(Name = "values")] IntArray values);

    [OperationContract(Name = "stock", Action = "urn:depot:IDepot:stockRequest", ReplyAction = "*")]
    [return: MessageParameter(Name = "return")]
    DepotStock Stock();

    [OperationContract(Name = "touch", Action = "urn:depot/touch", ReplyAction = "*")]
    void Touch([MessageParameter(Name = "key")] string? key);

    [OperationContract(Name = "grow", Action = "urn:depot/grow", ReplyAction = "*")]
    [return: MessageParameter(Name = "return")]
    DepotShape Grow([MessageParameter(Name = "shape")] DepotShape shape, [MessageParameter(Name = "by")] double by);

    [OperationContract(Name = "note", Action = "urn:depot/note", IsOneWay = true)]
    void Note([MessageParameter(Name = "line")] string line, [MessageParameter(Name = "level")] DepotLevel level);
}

[XmlType("Order", Namespace = Types)]
public class DepotOrder
{
    internal const string Types = "urn:depot:data";
    internal const string Common = "urn:depot:common";
    [XmlElement("id", Form = XmlSchemaForm.Unqualified)] public long Id { get; set; }
    [XmlElement("customer", Form = XmlSchemaForm.Unqualified)] public string? Customer { get; set; }
    [XmlElement("lines", Form = XmlSchemaForm.Unqualified, IsNullable = true)] public DepotLine?[]? Lines { get; set; }
}

[XmlType("Line", Namespace = DepotOrder.Types)]
public class DepotLine
{
    [XmlElement("sku", Form = XmlSchemaForm.Unqualified)] public string? Sku { get; set; }
    [XmlElement("quantity", Form = XmlSchemaForm.Unqualified)] public int Quantity { get; set; }
    [XmlElement("price", Form = XmlSchemaForm.Unqualified)] public decimal Price { get; set; }
}

[XmlType("Receipt", Namespace = DepotOrder.Types)]
public class DepotReceipt
{
    [XmlElement("orderId", Form = XmlSchemaForm.Unqualified)] public long OrderId { get; set; }
    [XmlElement("at", Form = XmlSchemaForm.Unqualified)] public DateTime At { get; set; }
    [XmlElement("remark", Namespace = DepotOrder.Common)] public string? Remark { get; set; }
}

[XmlType("Stock", Namespace = DepotOrder.Types)]
public class DepotStock
{
    [XmlElement("items", Form = XmlSchemaForm.Unqualified)] public DepotLine[]? Items { get; set; }
    [XmlAttribute("level")] public DepotLevel Level { get; set; }
}

[XmlType("Shape", Namespace = DepotOrder.Types), XmlInclude(typeof(DepotSquare))]
public abstract class DepotShape
{
    [XmlElement("label", Form = XmlSchemaForm.Unqualified)] public string? Label { get; set; }
}

[XmlType("Square", Namespace = DepotOrder.Types)]
public class DepotSquare : DepotShape
{
    [XmlElement("side", Form = XmlSchemaForm.Unqualified)] public double Side { get; set; }
}

[XmlType("BadOrder", Namespace = DepotOrder.Types), XmlRoot("BadOrder", Namespace = DepotOrder.Types)]
public class BadOrder
{
    [XmlElement("code", Form = XmlSchemaForm.Unqualified)] public int Code { get; set; }
    [XmlElement("message", Form = XmlSchemaForm.Unqualified)] public string? Message { get; set; }
}

[XmlType("IntArray", Namespace = DepotOrder.Common)]
public class IntArray
{
    [XmlElement("item", Namespace = DepotOrder.Common)] public int[]? Item { get; set; }
}

[XmlType("Level", Namespace = DepotOrder.Common)]
public enum DepotLevel { LOW, HIGH }
