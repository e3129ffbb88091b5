using System;
using System.Collections.Generic;
using System.Runtime.Serialization;
using System.ServiceModel;

namespace Contoso.Risk
{
    [ServiceContract]
    public interface IRiskService
    {
        [OperationContract]
        [FaultContract(typeof(RiskFault))]
        RiskResult Evaluate(string book, int[] scenarios);
    }

    [DataContract]
    public class RiskResult
    {
        [DataMember] public string Book;
        [DataMember] public Dictionary<string, decimal> ByScenario;
        [DataMember] public DateTime At;
    }

    [DataContract]
    public class RiskFault
    {
        [DataMember] public string Why;
    }

    // .NET has no ServiceBehavior: a host there must live without it.
    [ServiceBehavior(InstanceContextMode = InstanceContextMode.PerCall, IncludeExceptionDetailInFaults = true)]
    public class RiskService : IRiskService
    {
        public RiskResult Evaluate(string book, int[] scenarios)
        {
            if (scenarios == null) throw new FaultException<RiskFault>(new RiskFault { Why = "no scenarios" }, "refused");
            var result = new RiskResult { Book = book, ByScenario = new Dictionary<string, decimal>(), At = new DateTime(2026, 11, 30, 8, 0, 0, DateTimeKind.Utc) };
            foreach (var scenario in scenarios) result.ByScenario["s" + scenario] = scenario * 1.50m;
            return result;
        }
    }
}
