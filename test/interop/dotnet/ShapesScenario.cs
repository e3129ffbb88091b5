using Generated.Shapes;

namespace Interop;

/// <summary>Inheritance over two namespaces: derived types as parameters, results, members and items, and nil among them.</summary>
public static class ShapesScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<IShapes>(url, most: 5, (binding, shapes) =>
        {
            report.Check($"{binding}: the service sees the derived type", () =>
            {
                Same.Check(Math.PI * 4, shapes.Area(new Circle { Radius = 2 }));
                Same.Check(9.0, shapes.Area(new Square { Side = 3 }));
                Same.Check(16.0, shapes.Area(new RoundedSquare { Side = 4, Bevel = 1 }));
                Same.Check(0.0, shapes.Area(null));
            });
            report.Check($"{binding}: derived types come back", () =>
            {
                Same.Check(new Circle { Label = "{http://schemas.datacontract.org/2004/07/Contoso.Shapes}Circle", Radius = 3, Origin = new Point { X = 1 } }, shapes.Grow(new Circle { Radius = 1.5, Origin = new Point { X = 1 } }, 2));
                Same.Check(new RoundedSquare { Label = "{http://schemas.datacontract.org/2004/07/Contoso.More}RoundedSquare", Side = 2, Bevel = 0.5, Extra = new Circle { Radius = 1 } }, shapes.Grow(new RoundedSquare { Side = 1, Bevel = 0.5, Extra = new Circle { Radius = 1 } }, 2));
                Same.Check(new Shape { Label = "no type" }, shapes.Grow(new Shape(), 2));
                Same.Check(null, shapes.Grow(null, 2));
                Same.Check(new Point { X = -0.0, Y = double.MaxValue }, shapes.Point(new Point { X = -0.0, Y = double.MaxValue }));
                var deep = new RoundedSquare { Label = "deep", Corner = new Point(), Extra = new Circle { Origin = new Point { Y = 1e-300 } } };
                Same.Check(deep, shapes.Deep(deep));
            });
            report.Check($"{binding}: an array of mixed types", () => Same.Check(new Shape?[]
            {
                new() { Label = "plain" },
                new Circle { Label = "circle", Origin = new Point { X = 1, Y = -0.0 }, Radius = 0.1 },
                null,
                new RoundedSquare { Label = "rounded", Corner = new Point { X = 1, Y = 2 }, Side = 3, Bevel = double.PositiveInfinity, Extra = new Circle { Label = "inner", Radius = double.NaN } },
                new Group { Label = "group", Members = [new Square { Side = 2 }, new Shape { Label = "leaf" }], Names = ["a", null, ""] },
            }, shapes.All()));
        });
    }
}
