using System.Net.Http.Headers;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Text;
using System.Xml;

namespace SoaBroker.Host;

/// <summary>A request that cannot be read as SOAP.</summary>
public sealed class NotSoapException(int status, string why, Exception? cause = null) : Exception(why, cause)
{
    public int Status { get; } = status;
}

/// <summary>A SOAP version over HTTP: bytes ⇄ WCF's Message, and where its action stands.</summary>
public sealed class SoapFormat
{
    public const string Addressing = "http://www.w3.org/2005/08/addressing";
    private const int MaxHeaderBytes = 65_536;
    private static readonly SoapFormat Soap11 = new("text/xml", MessageVersion.Soap11, MessageVersion.CreateVersion(EnvelopeVersion.Soap11, AddressingVersion.WSAddressing10));
    private static readonly SoapFormat Soap12 = new("application/soap+xml", MessageVersion.CreateVersion(EnvelopeVersion.Soap12, AddressingVersion.None), MessageVersion.Soap12WSAddressing10);

    private readonly string mediaType;
    private readonly MessageEncoder plain;
    private readonly MessageEncoder addressed;

    private SoapFormat(string mediaType, MessageVersion plain, MessageVersion addressed)
    {
        this.mediaType = mediaType;
        this.plain = Encoder(plain);
        this.addressed = Encoder(addressed);
    }

    // Sizes are bounded by the whole message's; only the depth needs a limit of its own. WCF's reader refuses document types.
    private static MessageEncoder Encoder(MessageVersion version) => new TextMessageEncodingBindingElement(version, new UTF8Encoding(false))
    {
        ReaderQuotas = { MaxDepth = 128, MaxArrayLength = int.MaxValue, MaxStringContentLength = int.MaxValue, MaxBytesPerRead = int.MaxValue, MaxNameTableCharCount = int.MaxValue },
    }.CreateMessageEncoderFactory().Encoder;

    /// <summary>The format of a request by its content type. Throws NotSoapException 415.</summary>
    public static SoapFormat Of(string? contentType) =>
        (MediaTypeHeaderValue.TryParse(contentType, out var parsed) ? parsed.MediaType?.ToLowerInvariant() : null) switch
        {
            "text/xml" => Soap11,
            "application/soap+xml" => Soap12,
            var other => throw new NotSoapException(415, $"content type {other ?? "(none)"}: text/xml (SOAP 1.1) or application/soap+xml (SOAP 1.2) is expected"),
        };

    /// <summary>Reads an envelope; its action is the header's of WS-Addressing, else HTTP's, else "". Throws NotSoapException.</summary>
    public SoapRequest Read(ReadOnlyMemory<byte> bytes, string contentType, string? soapAction)
    {
        try
        {
            var message = plain.ReadMessage(new MemoryStream(bytes.ToArray(), writable: false), MaxHeaderBytes, contentType);
            var wsaAction = Header(message, "Action");
            var httpAction = this == Soap11 ? soapAction : MediaTypeHeaderValue.Parse(contentType).Parameters.FirstOrDefault(one => one.Name.Equals("action", StringComparison.OrdinalIgnoreCase))?.Value;
            return new SoapRequest(this, message, wsaAction ?? httpAction?.Trim().Trim('"') ?? "", Header(message, "MessageID"), IsAddressed: wsaAction is not null || Header(message, "MessageID") is not null);
        }
        catch (Exception error) when (error is XmlException or CommunicationException or FormatException or DecoderFallbackException or QuotaExceededException)
        {
            throw new NotSoapException(400, $"no {(this == Soap11 ? "SOAP 1.1" : "SOAP 1.2")} envelope: {error.Message}", error);
        }
    }

    private static string? Header(Message message, string name) =>
        message.Headers.FindHeader(name, Addressing) is >= 0 and var at ? message.Headers.GetHeader<string>(at).Trim() : null;

    /// <summary>The version of a reply: with WS-Addressing for whoever sent it.</summary>
    public MessageVersion ReplyVersion(bool isAddressed) => (isAddressed ? addressed : plain).MessageVersion;

    public (string ContentType, ArraySegment<byte> Bytes) Write(Message message, BufferManager buffers)
    {
        var encoder = message.Version.Addressing == AddressingVersion.None ? plain : addressed;
        return ($"{mediaType}; charset=utf-8", encoder.WriteMessage(message, int.MaxValue, buffers));
    }
}

/// <param name="Action">"": none was said.</param>
public sealed record SoapRequest(SoapFormat Format, Message Message, string Action, string? MessageId, bool IsAddressed)
{
    /// <summary>The first header that must be understood and is not: all of WS-Addressing and HPC Pack's are.</summary>
    public string? NotUnderstood() => Message.Headers
        .Where(header => header.MustUnderstand && header.Namespace is not (SoapFormat.Addressing or "http://www.microsoft.com/hpc" or "http://schemas.microsoft.com/ws/2005/05/addressing/none"))
        .Select(header => $"{{{header.Namespace}}}{header.Name}").FirstOrDefault();

    public SoapReply Reply(string action, BodyCodec codec, object?[] values) => new(Related(Message.CreateMessage(Format.ReplyVersion(IsAddressed), action, new CodecBody(codec, values))), IsFault: false);

    public SoapReply Reply(Fault fault) => new(Related(fault.ToMessage(Format.ReplyVersion(IsAddressed))), IsFault: true);

    private Message Related(Message reply)
    {
        if (!IsAddressed) reply.Headers.Action = null; // it would be written as a header that only WCF knows
        else if (MessageId is not null) reply.Headers.RelatesTo = new UniqueId(MessageId);
        return reply;
    }

    private sealed class CodecBody(BodyCodec codec, object?[] values) : BodyWriter(isBuffered: true)
    {
        protected override void OnWriteBodyContents(XmlDictionaryWriter writer) => codec.Write(writer, values);
    }
}

public sealed record SoapReply(Message Message, bool IsFault);
