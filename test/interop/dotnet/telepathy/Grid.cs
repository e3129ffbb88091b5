using System.ServiceModel;
using System.ServiceModel.Channels;

namespace Interop.Telepathy;

/// <summary>HPC Pack's two launchers, called as its client does: each call on a proxy, and so a connection, of its own.</summary>
public sealed class Grid(string launcher)
{
    /// <summary>`net.tcp://HOST:PORT` of the session launcher.</summary>
    public string Address { get; } = launcher;

    /// <summary>NetTcpBinding without security, which the Telepathy client uses for all but its broker channels.</summary>
    public static NetTcpBinding NetTcp() => new(SecurityMode.None) { CloseTimeout = TimeSpan.FromSeconds(5), MaxReceivedMessageSize = 1 << 20, MaxBufferSize = 1 << 20 };

    public T Launch<T>(Func<ISessionLauncher, T> use) => Call(NetTcp(), $"{Address}/SessionLauncher", use);
    public T Launch2016<T>(Func<ISessionLauncher2016, T> use) => Call(NetTcp(), $"{Address}/SessionLauncher", use);

    /// <summary>One call on a proxy of its own, closed in order; a fault of the call is thrown as it came.</summary>
    public static R Call<T, R>(Binding binding, string address, Func<T, R> use, Action<ChannelFactory<T>>? credentials = null)
    {
        var factory = new ChannelFactory<T>(binding, new EndpointAddress(address));
        credentials?.Invoke(factory);
        var proxy = factory.CreateChannel();
        try
        {
            var result = use(proxy);
            ((IClientChannel)proxy!).Close();
            factory.Close();
            return result;
        }
        catch
        {
            ((IClientChannel)proxy!).Abort();
            factory.Abort();
            throw;
        }
    }

    /// <summary>Allocate, then Create at the first broker launcher that it names ([wire-contract] 5.1, 5.2).</summary>
    public Session Create(SessionStartInfo info, bool durable = false)
    {
        var allocated = Launch(sl => durable ? sl.AllocateDurable(info, "net.tcp://") : sl.Allocate(info, "net.tcp://"))!;
        var brokerLauncher = allocated.BrokerLauncherEpr![0];
        info.ServiceVersion = allocated.ServiceVersion ?? info.ServiceVersion;
        var broker = Call(NetTcp(), brokerLauncher, (IBrokerLauncher bl) => durable ? bl.CreateDurable(info, allocated.Id!) : bl.Create(info, allocated.Id!))!;
        return new Session(allocated.Id!, durable, brokerLauncher, broker);
    }

    /// <summary>GetInfo, then Attach at the broker launcher that it names ([wire-contract] 5.3). A launcher that cannot be reached is tried again, later each time; a fault is final.</summary>
    public Session Attach(string sessionId)
    {
        var info = Patiently(() => Launch(sl => sl.GetInfo("net.tcp://", sessionId)))!;
        var broker = Call(NetTcp(), info.BrokerLauncherEpr!, (IBrokerLauncher bl) => bl.Attach(sessionId))!;
        return new Session(sessionId, info.Durable, info.BrokerLauncherEpr!, broker);
    }

    private static T Patiently<T>(Func<T> call, int tries = 8)
    {
        for (var wait = TimeSpan.FromMilliseconds(100); ; wait *= 2)
        {
            try { return call(); } catch (CommunicationException error) when (error is not FaultException && --tries > 0) { Thread.Sleep(wait); }
        }
    }
}

/// <summary>A session as its client knows it.</summary>
public sealed class Session(string id, bool isDurable, string brokerLauncher, BrokerInitializationResult broker)
{
    public string Id { get; } = id;
    public bool IsDurable { get; } = isDurable;
    public string BrokerLauncher { get; } = brokerLauncher;
    public BrokerInitializationResult Broker { get; } = broker;

    /// <summary>As the Telepathy client makes it for its three broker channels: sizes by MaxMessageSize, no time limit on a silent channel.</summary>
    public NetTcpBinding Binding()
    {
        var most = (int)Broker.MaxMessageSize;
        return new(SecurityMode.None)
        {
            CloseTimeout = TimeSpan.FromSeconds(5), ReceiveTimeout = TimeSpan.MaxValue, SendTimeout = TimeSpan.FromMilliseconds(Broker.ServiceOperationTimeout),
            MaxReceivedMessageSize = most, MaxBufferSize = most,
            ReaderQuotas = { MaxStringContentLength = most, MaxArrayLength = most, MaxDepth = int.MaxValue, MaxBytesPerRead = int.MaxValue, MaxNameTableCharCount = int.MaxValue },
        };
    }

    /// <summary>Which of the broker's addresses its channels use: 0 NetTcp, 4 NetHttp.</summary>
    public int Scheme { get; init; }

    /// <summary>The same session over NetHttp: WebSocket always, binary, no security ([wire-contract] 4.2).</summary>
    public Session OverNetHttp() => new(Id, IsDurable, BrokerLauncher, Broker) { Scheme = 4 };

    public Binding Channels() => Scheme == 4 ? NetHttp(WebSocketTransportUsage.Always) : Binding();

    public NetHttpBinding NetHttp(WebSocketTransportUsage usage)
    {
        var most = (int)Broker.MaxMessageSize;
        return new(BasicHttpSecurityMode.None)
        {
            CloseTimeout = TimeSpan.FromSeconds(5), ReceiveTimeout = TimeSpan.MaxValue, SendTimeout = TimeSpan.FromMilliseconds(Broker.ServiceOperationTimeout),
            MaxReceivedMessageSize = most, MaxBufferSize = most, WebSocketSettings = { TransportUsage = usage },
            ReaderQuotas = { MaxStringContentLength = most, MaxArrayLength = most, MaxDepth = int.MaxValue, MaxBytesPerRead = int.MaxValue, MaxNameTableCharCount = int.MaxValue },
        };
    }

    public string? Ping() => Launcher(bl => bl.PingBroker2(Id));
    public void Close() => Launcher(bl => { bl.Close(Id); return true; });
    public T Launcher<T>(Func<IBrokerLauncher, T> use) => Grid.Call(Grid.NetTcp(), BrokerLauncher, use);
    public T Controller<T>(Func<IController, T> use) => Grid.Call(Channels(), Broker.ControllerEpr![Scheme]!, use);
}
