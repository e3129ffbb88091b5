using System.Collections.Concurrent;
using System.ServiceModel;
using Generated.Calc;
using Generated.Orders;
using Generated.Shapes;

namespace Interop;

// The contracts of the scenarios, served: examples/dotnet-host loads this assembly, and the same scenarios call it without a broker between.

public class CalcService : ICalc
{
    private static readonly ConcurrentQueue<string> Pinged = new(), Resets = new();

    public int Add(int a, int b) => a + b;
    public string Echo(string text) => text switch { "pinged?" => string.Join(',', Pinged), "resets?" => string.Join(',', Resets), _ => text };
    public long Big(long v) => v;
    public decimal Sum(int[] values) => values?.Sum() ?? 0;
    public Prims Prims(Prims p) => p;
    public void Ping(string id) => Pinged.Enqueue(id);
    public void Reset(string why) => Resets.Enqueue(why);
    public DateTime Now() => new(2026, 2, 28, 23, 59, 59, 999, DateTimeKind.Utc);
}

public class OrdersService : IOrders
{
    private static FaultException Refused() => new FaultException<OrderFault>(new OrderFault { Code = 7, Reasons = ["too late", null!, ""] }, "refused");

    public Receipt Place(Order order) => order?.Note switch
    {
        "refuse" => throw Refused(),
        "crash" => throw new InvalidOperationException("not for clients"),
        _ => new Receipt { Order = order, Number = order?.Id ?? 0, Codes = order?.Tags?.Select((_, i) => i).ToArray() },
    };

    public Order[] Find(string[] tags, Status status) => [.. tags.Select((tag, i) => tag is null ? null! : new Order { Id = i, Note = tag, Status = status, Total = 0.10m })];
    public Guid[] Keys() => [Guid.Empty, Guid.Parse("0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa")];
    public void Cancel(long id) { if (id < 0) throw Refused(); }
}

public class ShapesService : IShapes
{
    public double Area(Shape shape) => shape switch { Circle circle => Math.PI * circle.Radius * circle.Radius, Square square => square.Side * square.Side, _ => 0 };

    public Shape Grow(Shape shape, double factor)
    {
        if (shape is null) return null!;
        shape.Label = shape.GetType() == typeof(Shape) ? "no type" : $"{{http://schemas.datacontract.org/2004/07/Contoso.{(shape is Square ? "More" : "Shapes")}}}{shape.GetType().Name}";
        if (shape is Circle circle) circle.Radius *= factor;
        if (shape is Square square) square.Side *= factor;
        return shape;
    }

    public Shape[] All() =>
    [
        new() { Label = "plain" },
        new Circle { Label = "circle", Origin = new Point { X = 1, Y = -0.0 }, Radius = 0.1 },
        null!,
        new RoundedSquare { Label = "rounded", Corner = new Point { X = 1, Y = 2 }, Side = 3, Bevel = double.PositiveInfinity, Extra = new Circle { Label = "inner", Radius = double.NaN } },
        new Group { Label = "group", Members = [new Square { Side = 2 }, new Shape { Label = "leaf" }], Names = ["a", null!, ""] },
    ];

    public Point Point(Point p) => p;
    public RoundedSquare Deep(RoundedSquare s) => s;
}

public class ThreeService : IThree
{
    public ItemC? Mix(ItemA? item, ItemB? other, ItemC? third, out ItemB? left, out ItemA? right)
    {
        (left, right) = (other, item);
        return third;
    }
}

/// <summary>How often the class was made, and how many calls were in one object and in all of them at a time.</summary>
[ServiceContract(Namespace = "urn:interop")]
public interface IGauge
{
    [OperationContract] Task<int> Wait(int ms);
    [OperationContract] int[] Read();
    [OperationContract] object Unwritable();
}

public class GaugeService : IGauge
{
    private static int made, now, most, shared;
    private int mine;

    public GaugeService() => Interlocked.Increment(ref made);

    public async Task<int> Wait(int ms)
    {
        if (Interlocked.Increment(ref mine) > 1) Interlocked.Increment(ref shared);
        var running = Interlocked.Increment(ref now);
        for (var seen = most; seen < running; seen = most) Interlocked.CompareExchange(ref most, running, seen);
        await Task.Delay(ms);
        Interlocked.Decrement(ref now);
        Interlocked.Decrement(ref mine);
        return running;
    }

    public int[] Read() => [made, most, shared];

    /// <summary>No known type of the contract: only writing it tells.</summary>
    public object Unwritable() => new UriBuilder();
}
