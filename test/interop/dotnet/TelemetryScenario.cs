using System.ServiceModel;
using System.Text.Json;
using System.Xml.Serialization;

namespace Interop;

/// <summary>A schema that is no data contract: attributes, unqualified elements, text with attributes, choice, all, lists. Types as xsd.exe makes them, by hand: no tool for it runs here.</summary>
public static class TelemetryScenario
{
    public static void Run(Report report, string url)
    {
        Clients.Each<ITelemetry>(url, most: 5, (binding, telemetry) =>
        {
            Report1 Send(Batch batch, Sample[] samples) => telemetry.Send(new SendRequest { Batch = batch, Sample = samples }).SendResult!;
            var stamp = new DateTime(2026, 11, 30, 1, 2, 3, DateTimeKind.Utc);
            var batch = new Batch { Id = 42, Urgent = true, UrgentSpecified = true, Source = "ok", Stamp = stamp, StampSpecified = true, Note = ["one", "two <&>"], Owner = new Owner { Kind = "person", Mail = "a@b" } };
            Sample[] samples = [new() { Unit = "°C", Seq = long.MaxValue, Value = 21.5 }, new() { Seq = -1, Value = double.NegativeInfinity }];
            report.Check($"{binding}: attributes, choice, all and lists come back", () =>
            {
                var answer = Send(batch, samples);
                Same.Check(new Report1 { At = new DateTime(2026, 2, 28, 23, 59, 59, DateTimeKind.Utc).AddTicks(1_234_567), AtSpecified = true, Lang = "de", Item = 42, Level = [0, 1], Box = new Box { A = 1, B = 2 } }, answer);
            });
            report.Check($"{binding}: everything arrives", () =>
            {
                batch.Source = "error";
                var seen = JsonDocument.Parse((string)Send(batch, samples).Item).RootElement;
                var (sent, first) = (seen.GetProperty("batch"), seen.GetProperty("sample")[0]);
                Same.Check(42, sent.GetProperty("$attributes").GetProperty("id").GetInt32());
                Same.Check(true, sent.GetProperty("$attributes").GetProperty("urgent").GetBoolean());
                Same.Check(stamp, sent.GetProperty("stamp").GetDateTime());
                Same.Check(new[] { "one", "two <&>" }, sent.GetProperty("note").EnumerateArray().Select(one => one.GetString()).ToArray());
                Same.Check("person", sent.GetProperty("owner").GetProperty("$attributes").GetProperty("kind").GetString());
                Same.Check("a@b", sent.GetProperty("owner").GetProperty("mail").GetString());
                Same.Check(21.5, first.GetProperty("$value").GetDouble());
                Same.Check(long.MaxValue.ToString(), first.GetProperty("$attributes").GetProperty("seq").GetString());
                Same.Check("°C", first.GetProperty("$attributes").GetProperty("unit").GetString());
                Same.Check(2, seen.GetProperty("sample").GetArrayLength());
            });
            report.Check($"{binding}: a derived type", () =>
            {
                batch.Source = "big";
                Same.Check(new BigReport { Item = 42, More = "yes", Size = 5, SizeSpecified = true }, (BigReport)Send(batch, []));
            });
            report.Check($"{binding}: a list of enumerated words", () =>
            {
                Same.Check(Rights.Read | Rights.Admin, telemetry.Flags(Rights.Read | Rights.Admin));
                Same.Check(Rights.Write, telemetry.Flags(Rights.Write));
            });
        });
    }
}

[ServiceContract(Name = "ITelemetry", Namespace = "http://contoso.com/telemetry"), XmlSerializerFormat]
public interface ITelemetry
{
    [OperationContract(Action = "http://contoso.com/telemetry/ITelemetry/Send", ReplyAction = "http://contoso.com/telemetry/ITelemetry/SendResponse")]
    SendResponse Send(SendRequest request);

    [OperationContract(Action = "http://contoso.com/telemetry/ITelemetry/Flags", ReplyAction = "http://contoso.com/telemetry/ITelemetry/FlagsResponse")]
    Rights Flags(Rights f);
}

/// <summary>As dotnet-svcutil does where an array has no element of its own: attributes of parameters are not seen by .NET's client.</summary>
[MessageContract(WrapperName = "Send", WrapperNamespace = Namespace)]
public class SendRequest
{
    internal const string Namespace = "http://contoso.com/telemetry";
    [MessageBodyMember(Name = "batch", Namespace = Namespace, Order = 0)] public Batch? Batch { get; set; }
    [MessageBodyMember(Name = "sample", Namespace = Namespace, Order = 1), XmlElement("sample")] public Sample[]? Sample { get; set; }
}

[MessageContract(WrapperName = "SendResponse", WrapperNamespace = SendRequest.Namespace)]
public class SendResponse
{
    [MessageBodyMember(Namespace = SendRequest.Namespace)] public Report1? SendResult { get; set; }
}

[XmlType(Namespace = Types)]
public class Batch
{
    internal const string Types = "http://contoso.com/telemetry/types";
    [XmlElement("source", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public string Source { get; set; } = "";
    [XmlElement("stamp")] public DateTime Stamp { get; set; }
    [XmlIgnore] public bool StampSpecified { get; set; }
    [XmlElement("note")] public string[]? Note { get; set; }
    [XmlElement("owner")] public Owner? Owner { get; set; }
    [XmlAttribute("id")] public int Id { get; set; }
    [XmlAttribute("urgent")] public bool Urgent { get; set; }
    [XmlIgnore] public bool UrgentSpecified { get; set; }
}

[XmlType(AnonymousType = true, Namespace = Batch.Types)]
public class Owner
{
    [XmlElement("mail", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public string Mail { get; set; } = "";
    [XmlAttribute("kind")] public string? Kind { get; set; }
}

[XmlType(Namespace = Batch.Types)]
public class Sample
{
    [XmlAttribute("unit")] public string? Unit { get; set; }
    [XmlAttribute("seq")] public long Seq { get; set; }
    [XmlText] public double Value { get; set; }
}

[XmlType("Report", Namespace = Batch.Types), XmlInclude(typeof(BigReport))]
public class Report1
{
    [XmlElement("ok", typeof(int), Form = System.Xml.Schema.XmlSchemaForm.Unqualified), XmlElement("error", typeof(string), Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public object Item { get; set; } = "";
    [XmlElement("level", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public int[]? Level { get; set; }
    [XmlElement("box", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public Box? Box { get; set; }
    [XmlAttribute("at")] public DateTime At { get; set; }
    [XmlIgnore] public bool AtSpecified { get; set; }
    [XmlAttribute("lang", Form = System.Xml.Schema.XmlSchemaForm.Qualified)] public string? Lang { get; set; }
}

[XmlType(Namespace = Batch.Types)]
public class Box
{
    [XmlElement("b", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public int B { get; set; }
    [XmlElement("a", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public int A { get; set; }
}

[XmlType(Namespace = Batch.Types)]
public class BigReport : Report1
{
    [XmlElement("more", Form = System.Xml.Schema.XmlSchemaForm.Unqualified)] public string More { get; set; } = "";
    [XmlAttribute("size")] public int Size { get; set; }
    [XmlIgnore] public bool SizeSpecified { get; set; }
}

[Flags, XmlType(Namespace = Batch.Types)]
public enum Rights { Read = 1, Write = 2, Admin = 4 }
