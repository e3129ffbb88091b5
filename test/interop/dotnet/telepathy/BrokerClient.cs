using System.Collections.Concurrent;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.ServiceModel.Description;

namespace Interop.Telepathy;

/// <summary>
/// One client id of a session, with the three connections that HPC's BrokerClient opens: a bare duplex channel on which nothing ever comes back, the controller,
/// and the response service with its callback ([wire-contract] 5.4 to 5.7).
/// </summary>
public sealed class BrokerClient : IDisposable
{
    public const string Hpc = "http://www.microsoft.com/hpc";
    private static readonly TypedMessageConverter Requests = TypedMessageConverter.Create(typeof(EchoRequest), Echoes.Action);
    private static readonly TimeSpan SendTimeout = TimeSpan.FromSeconds(60);

    private readonly Session session;
    private readonly IChannelFactory<IDuplexSessionChannel> senders;
    private readonly IDuplexSessionChannel sender;
    private readonly ChannelFactory<IController> controllers;
    private int uncommitted;

    public BrokerClient(Session session, string clientId)
    {
        this.session = session;
        Id = clientId;
        senders = session.Channels().BuildChannelFactory<IDuplexSessionChannel>();
        senders.Open();
        sender = senders.CreateChannel(new EndpointAddress(session.Broker.BrokerEpr![session.Scheme]!));
        controllers = new ChannelFactory<IController>(session.Channels(), new EndpointAddress(session.Broker.ControllerEpr![session.Scheme]!));
        Controller = controllers.CreateChannel();
    }

    public string Id { get; }
    public IController Controller { get; }
    /// <summary>User data by message id, of all that was sent.</summary>
    public ConcurrentDictionary<UniqueIdText, int> Sent { get; } = new();
    /// <summary>Batch id of a durable session's requests: a count from 0 in each process.</summary>
    public int BatchId { get; init; }

    public void Send(string? input, int userData, UniqueIdText? messageId = null, string? clientId = null)
    {
        if (sender.State == CommunicationState.Created) sender.Open();
        var id = messageId ?? UniqueIdText.New();
        using var message = Request(input, id, session.Broker.BrokerEpr![session.Scheme]!);
        message.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_UserDataNS", Hpc, userData));
        message.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_ClientIdNS", Hpc, clientId ?? Id));
        if (session.IsDurable) message.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_ClientInstanceIdNS", Hpc, BatchId));
        sender.Send(message, SendTimeout);
        if (Sent.TryAdd(id, userData)) uncommitted++;
    }

    public static Message Request(string? input, UniqueIdText id, string to)
    {
        var message = Requests.ToMessage(new EchoRequest { Input = input });
        message.Headers.MessageId = id.Id;
        message.Headers.To = new Uri(to);
        return message;
    }

    public void Flush()
    {
        Controller.Flush(uncommitted, Id, BatchId, timeoutThrottlingMs: 60_000, timeoutFlushMs: 60_000);
        uncommitted = 0;
    }

    public void EndRequests()
    {
        Controller.EndRequests(uncommitted, Id, BatchId, timeoutThrottlingMs: 60_000, timeoutEOMMs: 60_000);
        uncommitted = 0;
        sender.Close(TimeSpan.FromSeconds(5));
    }

    public Responses Responses() => new(session, Id);

    public void Dispose()
    {
        foreach (var one in new ICommunicationObject[] { sender, senders, (ICommunicationObject)Controller, controllers }) Quietly.Close(one);
    }
}

/// <summary>A message id that compares by its text.</summary>
public sealed record UniqueIdText(string Text)
{
    public System.Xml.UniqueId Id => new(Text);
    public static UniqueIdText New() => new($"urn:uuid:{Guid.NewGuid()}");
}

public static class Quietly
{
    /// <summary>Closes in order what is open, and drops what has failed.</summary>
    public static void Close(ICommunicationObject one)
    {
        try { if (one.State == CommunicationState.Opened) one.Close(TimeSpan.FromSeconds(5)); else one.Abort(); } catch (Exception error) when (error is CommunicationException or TimeoutException) { one.Abort(); }
    }
}
