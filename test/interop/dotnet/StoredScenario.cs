using System.Runtime.Serialization;
using System.ServiceModel;
using System.ServiceModel.Channels;
using System.Xml;
using System.Xml.Serialization;

namespace Interop;

/// <summary>Requests that are stored, and their responses, with HPC Pack's headers and controller and nothing but WCF: over SOAP 1.1 and over SOAP 1.2 with WS-Addressing.</summary>
public static class StoredScenario
{
    private const string Hpc = "http://www.microsoft.com/hpc";
    private const string Add = "http://tempuri.org/ICalc/Add";
    private const int Requests = 50;

    public static void Run(Report report, string url, string clientId)
    {
        var wsdl = Wsdl.Read(url);
        foreach (var (name, binding) in new (string, Binding)[] { ("BasicHttpBinding", Clients.Basic()), ("WSHttpBinding(None)", Clients.WsHttp()) })
        {
            var id = $"{clientId}-{(binding is WSHttpBinding ? 12 : 11)}";
            var address = wsdl.Address(soap12: binding is WSHttpBinding).AbsoluteUri;
            using var senders = new ChannelFactory<IRequestStore>(binding, new EndpointAddress(address));
            using var controllers = new ChannelFactory<IBrokerController>(Clients.Basic(), new EndpointAddress(address + "/Controller"));
            var (sender, controller) = (senders.CreateChannel(), controllers.CreateChannel());
            report.Check($"{name}: requests with user data are stored", () =>
            {
                for (var i = 0; i < Requests; i++) Send(sender, binding.MessageVersion, id, i);
                controller.EndRequests(Requests, id, batchId: 0, timeoutThrottlingMs: 60_000, timeoutEOMMs: 60_000);
                Same.Check(Requests, controller.GetRequestsCount(id));
            });
            report.Check($"{name}: responses are pulled with their user data", () => Same.Check(Enumerable.Range(0, Requests).ToDictionary(i => i, i => i + 1000).ToArray(), Pull(controller, id).OrderBy(one => one.Key).ToArray()));
            report.Check($"{name}: and again from the beginning", () => Same.Check(Requests, Pull(controller, id).Count));
            report.Check($"{name}: a refusal is a typed SessionFault", () =>
            {
                var fault = Same.Throws<FaultException<SessionFault>>(() => controller.EndRequests(1, id, 0, 1000, 1000));
                Same.Check(0x01000018, fault.Detail.Code); // Broker_EOMReject_GetResponse: the responses have been asked for
            });
            report.Check($"{name}: purge forgets them", () =>
            {
                controller.Purge(id);
                Same.Check(0, controller.GetRequestsCount(id));
            });
        }
    }

    private static void Send(IRequestStore store, MessageVersion version, string clientId, int i)
    {
        using var request = Message.CreateMessage(version, Add, new AddRequest { A = i, B = 1000 });
        request.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_UserDataNS", Hpc, i));
        request.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_ClientIdNS", Hpc, clientId));
        request.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_ClientInstanceIdNS", Hpc, 0));
        request.Headers.Add(MessageHeader.CreateHeader("HPCServer2008_Broker_MessageIdNS", Hpc, $"urn:uuid:{Guid.NewGuid()}"));
        using var answer = store.Send(request);
        Same.Check((false, true), (answer.IsFault, answer.IsEmpty));
    }

    /// <summary>AddResult by user data.</summary>
    private static Dictionary<int, int> Pull(IBrokerController controller, string clientId)
    {
        var found = new Dictionary<int, int>();
        for (var position = GetResponsePosition.Begin; ; position = GetResponsePosition.Current)
        {
            var page = controller.PullResponses(Add, position, 20, clientId);
            foreach (var envelope in page.SOAPMessage ?? [])
            {
                using var message = Message.CreateMessage(new XmlNodeReader(envelope), 65_536, MessageVersion.Soap11);
                Same.Check(Add + "Response", message.Headers.Action);
                var userData = message.Headers.GetHeader<int>("HPCServer2008_Broker_UserDataNS", Hpc);
                var body = message.GetReaderAtBodyContents();
                body.ReadStartElement("AddResponse", "http://tempuri.org/");
                found.Add(userData, body.ReadElementContentAsInt());
            }
            if (page.EOM) return found;
        }
    }
}

/// <summary>Takes any message: the broker answers a stored request with an empty body, which no typed operation reads.</summary>
[ServiceContract]
public interface IRequestStore
{
    [OperationContract(Action = "*", ReplyAction = "*")]
    Message Send(Message request);
}

/// <summary>The body that the contract's Add has.</summary>
[DataContract(Name = "Add", Namespace = "http://tempuri.org/")]
public class AddRequest
{
    [DataMember(Name = "a", Order = 0)] public int A { get; set; }
    [DataMember(Name = "b", Order = 1)] public int B { get; set; }
}

/// <summary>HPC Pack's: the parameter is spelled clientid in three of them.</summary>
[ServiceContract(Namespace = "http://hpc.microsoft.com/brokercontroller/")]
public interface IBrokerController
{
    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)]
    void EndRequests(int count, string clientid, int batchId, int timeoutThrottlingMs, int timeoutEOMMs);

    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)]
    void Purge(string clientid);

    [OperationContract, FaultContract(typeof(SessionFault), Action = SessionFault.Action)]
    int GetRequestsCount(string clientId);

    [OperationContract, XmlSerializerFormat, FaultContract(typeof(SessionFault), Action = SessionFault.Action)]
    BrokerResponseMessages PullResponses(string action, GetResponsePosition position, int count, string clientId);
}

public enum GetResponsePosition { Begin, Current }

public class BrokerResponseMessages
{
    public bool EOM { get; set; }
    [XmlElement("SOAPMessage")] public XmlElement[]? SOAPMessage { get; set; }
}

[DataContract(Namespace = "http://hpc.microsoft.com/session/")]
public class SessionFault
{
    public const string Action = "http://hpc.microsoft.com/session/SessionFault";
    [DataMember] public int Code { get; set; }
    [DataMember] public object[]? Context { get; set; }
    [DataMember] public string? Reason { get; set; }
}
