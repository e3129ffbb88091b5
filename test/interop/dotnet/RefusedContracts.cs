using System.ServiceModel;
using System.ServiceModel.Channels;

namespace Interop.Refused;

// Contracts that examples/dotnet-host says no to when it starts, each for a reason of its own.

[ServiceContract(CallbackContract = typeof(IBack))]
public interface IDuplex { [OperationContract] void Go(); }
[ServiceContract]
public interface IBack { [OperationContract] void Come(); }
public class Duplex : IDuplex { public void Go() { } }

[ServiceContract, XmlSerializerFormat(Style = OperationFormatStyle.Rpc)]
public interface IRpc { [OperationContract] int Go(int a); }
public class Rpc : IRpc { public int Go(int a) => a; }

[ServiceContract]
public interface IRaw { [OperationContract] Message Go(Message message); }
public class Raw : IRaw { public Message Go(Message message) => message; }

[MessageContract]
public class Letter { [MessageBodyMember] public string? Text { get; set; } }
[ServiceContract]
public interface IMessages { [OperationContract] Letter Go(Letter letter); }
public class Messages : IMessages { public Letter Go(Letter letter) => letter; }

[ServiceContract]
public interface IStreams { [OperationContract] void Go(string name, Stream stream); }
public class Streams : IStreams { public void Go(string name, Stream stream) { } }

[ServiceContract]
public interface IPair
{
    [OperationContract(AsyncPattern = true)] IAsyncResult BeginGo(AsyncCallback done, object? state);
    int EndGo(IAsyncResult result);
}
public class Pair : IPair
{
    public IAsyncResult BeginGo(AsyncCallback done, object? state) => Task.FromResult(1);
    public int EndGo(IAsyncResult result) => 1;
}

public class Unknowable(int a) { public int A => a; }
[ServiceContract]
public interface IUnknowable { [OperationContract] Unknowable? Go(); }
public class UnknowableService : IUnknowable { public Unknowable? Go() => null; }

[ServiceContract]
public interface INobody { [OperationContract] void Go(); }

[ServiceContract]
public interface IThrows { [OperationContract] void Go(); }
public class Throws : IThrows
{
    public Throws() => throw new InvalidOperationException("no licence");
    public void Go() { }
}
