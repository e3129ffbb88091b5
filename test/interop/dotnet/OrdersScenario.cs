using System.ServiceModel;
using Generated.Orders;

namespace Interop;

/// <summary>Nested data contracts, arrays (empty, one, many, with nil in them), enumerations, nil against empty, declared and undeclared faults.</summary>
public static class OrdersScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<IOrders>(url, most: 5, (binding, orders) =>
        {
            report.Check($"{binding}: orders", () =>
            {
                foreach (var order in new[] { Full(), Sparse(), Empties() })
                {
                    var receipt = orders.Place(order);
                    Same.Check(order, receipt.Order);
                    Same.Check(order.Id, receipt.Number);
                    Same.Check(order.Tags?.Select((_, i) => i).ToArray(), receipt.Codes);
                }
                Same.Check(null, orders.Place(null).Order);
            });
            report.Check($"{binding}: arrays", () =>
            {
                Same.Check(Array.Empty<Order>(), orders.Find([], Status.New));
                Same.Check(new[] { Found(0, "a", Status.Shipped) }, orders.Find(["a"], Status.Shipped));
                Same.Check(new[] { Found(0, "a", Status.Paid), null, Found(2, "", Status.Paid) }, orders.Find(["a", null, ""], Status.Paid));
                Same.Check(new[] { Guid.Empty, Guid.Parse("0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa") }, orders.Keys());
            });
            report.Check($"{binding}: declared faults are typed", () =>
            {
                var fault = Same.Throws<FaultException<OrderFault>>(() => orders.Place(new Order { Note = "refuse" }));
                Same.Check(7, fault.Detail.Code);
                Same.Check(new[] { "too late", null, "" }, fault.Detail.Reasons);
                Same.Check("refused", fault.Reason.GetMatchingTranslation().Text);
                orders.Cancel(1);
                Same.Check(7, Same.Throws<FaultException<OrderFault>>(() => orders.Cancel(-1)).Detail.Code);
            });
            report.Check($"{binding}: other exceptions of the service are faults that tell nothing", () =>
            {
                var fault = Same.Throws<FaultException>(() => orders.Place(new Order { Note = "crash" }));
                Same.Check("InternalServiceFault", fault.Code.SubCode?.Name ?? fault.Code.Name);
                Same.Check(false, fault.Message.Contains("not for clients", StringComparison.Ordinal));
            });
        });
    }

    private static Order Found(long id, string note, Status status) => new() { Id = id, Note = note, Status = status, Total = 0.10m };

    private static Order Full() => new()
    {
        Blob = [1, 2, 3], Customer = new Customer { Name = "Ä & Co", Address = new Address { City = "Köln", Street = null } }, Id = long.MaxValue, Key = Guid.NewGuid(),
        Lines = [new OrderLine { Sku = "A-1", Qty = 3, Price = 19.90m }, null!, new OrderLine { Sku = "", Qty = -1, Price = 0.05m }], Note = "full", Placed = new DateTime(2026, 11, 30, 8, 0, 0, DateTimeKind.Utc),
        Shipped = new DateTime(2026, 12, 1, 8, 0, 0, 1, DateTimeKind.Unspecified), Status = Status.Shipped, Tags = ["x", null!, ""], Total = 59.65m,
    };

    private static Order Sparse() => new() { Status = Status.Paid };

    private static Order Empties() => new() { Blob = [], Customer = new Customer { Name = "" }, Lines = [], Note = "", Tags = [] };
}
