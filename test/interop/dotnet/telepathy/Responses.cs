using System.ServiceModel;
using System.ServiceModel.Channels;
using System.ServiceModel.Description;
using System.Threading.Channels;

namespace Interop.Telepathy;

/// <summary>One pushed message, read: what HPC's client takes from it.</summary>
public sealed record Pushed(string Action, UniqueIdText? RelatesTo, int? UserData, string? RequestAction, string? CallbackId, string? Result, EndOfResponses? End, FaultException? Fault);

/// <summary>
/// A response channel. Its callback may be called by several threads at once, and for pushes that overtake the reply of GetResponses, as in HPC's client: what comes is
/// put in order of arrival and counted by whoever reads.
/// </summary>
public sealed class Responses : IDisposable
{
    private readonly Channel<Pushed> arrived = Channel.CreateUnbounded<Pushed>();
    private readonly DuplexChannelFactory<IResponseService> factory;
    private readonly IResponseService service;
    private readonly string clientId;

    public Responses(Session session, string clientId)
    {
        this.clientId = clientId;
        factory = new DuplexChannelFactory<IResponseService>(new InstanceContext(new Callback(arrived.Writer)), session.Channels(), new EndpointAddress(session.Broker.ResponseEpr![session.Scheme]!));
        service = factory.CreateChannel();
        var channel = (ICommunicationObject)service;
        channel.Faulted += (_, _) => arrived.Writer.TryComplete(new CommunicationException("the response channel has failed"));
        channel.Closed += (_, _) => arrived.Writer.TryComplete(new CommunicationException("the response channel is closed"));
    }

    public Task Ask(string? action, string clientData, GetResponsePosition position, int count) => service.GetResponsesAsync(action, clientData, position, count, clientId);

    /// <summary>The next message; fails when none comes within a minute, or the channel has failed.</summary>
    public Pushed Next()
    {
        using var limit = new CancellationTokenSource(TimeSpan.FromSeconds(60));
        try { return arrived.Reader.ReadAsync(limit.Token).AsTask().GetAwaiter().GetResult(); } catch (ChannelClosedException error) when (error.InnerException is not null) { throw error.InnerException; }
    }

    /// <summary>What is there now.</summary>
    public Pushed? Look() => arrived.Reader.TryRead(out var one) ? one : null;

    /// <summary>
    /// The enumerator of HPC's client: 512 from the beginning, then windows of 256 each time all that were asked for have come, until the number that the end
    /// says has been received. The end may come before the last response.
    /// </summary>
    public (List<Pushed> Messages, EndOfResponses End, int Windows) Enumerate(string? action = Echoes.Action)
    {
        var clientData = Guid.NewGuid().ToString();
        var (windows, outstanding) = (1, 512);
        List<Pushed> messages = [];
        EndOfResponses? end = null;
        var asked = new List<Task> { Ask(action, clientData, GetResponsePosition.Begin, outstanding) };
        while (end is null || messages.Count < end.Count)
        {
            var one = Next();
            if (one.CallbackId != clientData) throw new Difference($"ResponseCallbackId of {one.Action} is {one.CallbackId}, not {clientData}");
            if (one.End is not null) { end ??= one.End; continue; }
            messages.Add(one);
            if (--outstanding > 0 || end is not null) continue;
            outstanding = 256;
            windows++;
            asked.Add(Ask(action, clientData, GetResponsePosition.Current, outstanding));
        }
        Task.WaitAll([.. asked], TimeSpan.FromSeconds(60));
        return (messages, end, windows);
    }

    /// <summary>SetResponseHandler of HPC's client: everything, by one call.</summary>
    public (List<Pushed> Messages, EndOfResponses End) All(string? action = null, GetResponsePosition position = GetResponsePosition.Begin)
    {
        var clientData = Guid.NewGuid().ToString();
        var asked = Ask(action, clientData, position, -1);
        List<Pushed> messages = [];
        for (EndOfResponses? end = null; ;)
        {
            if (end is not null && messages.Count >= end.Count) { asked.Wait(TimeSpan.FromSeconds(60)); return (messages, end); }
            var one = Next();
            if (one.CallbackId != clientData) throw new Difference($"ResponseCallbackId of {one.Action} is {one.CallbackId}, not {clientData}");
            if (one.End is not null) end = one.End; else messages.Add(one);
        }
    }

    public void Dispose()
    {
        Quietly.Close((ICommunicationObject)service);
        Quietly.Close(factory);
    }

    [CallbackBehavior(ConcurrencyMode = ConcurrencyMode.Multiple, UseSynchronizationContext = false)]
    private sealed class Callback(ChannelWriter<Pushed> arrived) : IResponseCallback
    {
        private static readonly TypedMessageConverter Echo = TypedMessageConverter.Create(typeof(EchoResponse), Echoes.ReplyAction);
        private static readonly TypedMessageConverter Eom = TypedMessageConverter.Create(typeof(EndOfResponses), EndOfResponses.Action);

        public void SendResponse(Message message)
        {
            try { arrived.TryWrite(Read(message)); } catch (Exception error) { arrived.TryComplete(error); }
        }

        private static Pushed Read(Message message)
        {
            var headers = message.Headers;
            var isEnd = headers.Action == EndOfResponses.Action;
            return new Pushed(
                headers.Action, headers.RelatesTo is null ? null : new UniqueIdText(headers.RelatesTo.ToString()), Header<int?>(headers, "UserDataNS"), Header<string>(headers, "RequestActionNS"),
                Header<string>(headers, "ResponseCallbackId"),
                message.IsFault || isEnd ? null : ((EchoResponse)Echo.FromMessage(message)).Result, // throws when the action is not the operation's
                isEnd ? (EndOfResponses)Eom.FromMessage(message) : null,
                message.IsFault ? Faults.Read(message) : null);
        }

        private static T? Header<T>(MessageHeaders headers, string name)
        {
            var at = headers.FindHeader($"HPCServer2008_Broker_{name}", BrokerClient.Hpc);
            return at < 0 ? default : headers.GetHeader<T>(at);
        }
    }
}

/// <summary>Fault messages as the exceptions that a typed proxy would have thrown.</summary>
public static class Faults
{
    public static FaultException Read(Message message)
    {
        var action = message.Headers.Action;
        var fault = MessageFault.CreateFault(message, 1 << 20);
        if (!fault.HasDetail) return new FaultException(fault, action);
        return fault.GetReaderAtDetailContents().LocalName switch
        {
            "SessionFault" => new FaultException<SessionFault>(fault.GetDetail<SessionFault>(), fault.Reason, fault.Code, action),
            "RetryOperationError" => new FaultException<RetryOperationError>(fault.GetDetail<RetryOperationError>(), fault.Reason, fault.Code, action),
            "ExceptionDetail" => new FaultException<ExceptionDetail>(fault.GetDetail<ExceptionDetail>(), fault.Reason, fault.Code, action),
            _ => new FaultException(fault, action),
        };
    }

    /// <summary>HPC's client formats its own text with the context: too few items and it throws. Each item is a string ([wire-contract] 2.1), and the reason has a text.</summary>
    public static void CheckContext(FaultException<SessionFault> fault)
    {
        if (fault.Detail.Context is null || fault.Detail.Context.Any(one => one is not string)) throw new Difference($"context of 0x{fault.Detail.Code:x8} is no array of strings");
        var text = fault.Detail.Reason ?? throw new Difference("no reason in the detail");
        if (fault.Detail.Context.Length > 0) _ = string.Format(System.Globalization.CultureInfo.InvariantCulture, text, fault.Detail.Context);
        Same.Check(true, fault.Reason.GetMatchingTranslation().Text.Length > 0);
    }
}
