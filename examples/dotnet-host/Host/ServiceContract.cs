using System.Reflection;
using System.ServiceModel;
using System.ServiceModel.Description;
using System.Xml.Serialization;

namespace SoaBroker.Host;

/// <summary>A declared fault: what FaultException&lt;T&gt; of this type becomes.</summary>
/// <param name="Element">Name and namespace of its detail where [FaultContract] says them; else the data contract's own.</param>
public sealed record DeclaredFault(string Name, string Action, Type Type, (string Name, string Namespace)? Element);

/// <param name="Reply">null: one-way.</param>
/// <param name="ReplyAction">null: one-way.</param>
public sealed record Operation(string Name, string Action, string? ReplyAction, BodyCodec Request, BodyCodec? Reply, IReadOnlyList<DeclaredFault> Faults, IReadOnlyList<Type> KnownTypes, MethodInfo Method)
{
    private readonly ParameterInfo[] parameters = Method.GetParameters();

    /// <summary>Calls the service; a Task is awaited. Returns one value for each part of the reply: the result if there is one, then out and ref parameters.</summary>
    public async Task<object?[]> InvokeAsync(object service, object?[] inputs)
    {
        var arguments = new object?[parameters.Length];
        for (int i = 0, next = 0; i < parameters.Length; i++)
        {
            if (!parameters[i].IsOut) arguments[i] = inputs[next++];
        }
        var result = Method.Invoke(service, BindingFlags.DoNotWrapExceptions, binder: null, arguments, culture: null);
        if (result is Task task)
        {
            await task.ConfigureAwait(false);
            result = Method.ReturnType == typeof(Task) ? null : task.GetType().GetProperty(nameof(Task<object>.Result))!.GetValue(task);
        }
        var hasResult = Method.ReturnType != typeof(void) && Method.ReturnType != typeof(Task);
        var outputs = arguments.Where((_, i) => parameters[i].ParameterType.IsByRef);
        return hasResult ? [result, .. outputs] : [.. outputs];
    }
}

/// <summary>The contract as WCF reads it from the attributes. What this host does not serve is refused here, by name.</summary>
public sealed class ServiceContract
{
    public ServiceContract(Type contract)
    {
        var description = Describe(contract);
        Name = description.Name;
        Namespace = description.Namespace;
        if (description.CallbackContractType is { } callback) throw Refused(contract.Name, $"its callback contract {callback.Name} asks for a duplex channel");
        var importer = new XmlReflectionImporter(description.Namespace);
        Operations = [.. description.Operations.Select(operation => Read(operation, importer))];
        ByAction = Operations.ToDictionary(operation => operation.Action);
        ByElement = Operations.ToLookup(operation => (operation.Request.Wrapper, operation.Request.WrapperNamespace));
    }

    public string Name { get; }
    public string Namespace { get; }
    public IReadOnlyList<Operation> Operations { get; }
    public IReadOnlyDictionary<string, Operation> ByAction { get; }
    public ILookup<(string Name, string Namespace), Operation> ByElement { get; }

    private static StartFailure Refused(string what, string why) => new(StartFailure.ContractDiscovery, $"{what} cannot be served: {why}");

    private static ContractDescription Describe(Type contract)
    {
        try { return ContractDescription.GetContract(contract); }
        catch (InvalidOperationException error) { throw Refused(contract.FullName!, error.Message); }
    }

    private static Operation Read(OperationDescription operation, XmlReflectionImporter importer)
    {
        if ((operation.TaskMethod ?? operation.SyncMethod) is not { } method) throw Refused(operation.Name, "a Begin/End pair; let the method return a Task instead");
        StartFailure Refuse(string why) => Refused($"{method.DeclaringType!.Name}.{method.Name}", why);
        var input = operation.Messages[0];
        var output = operation.IsOneWay ? null : operation.Messages[1];
        if (input.Action == "*") throw Refuse("Action=\"*\" takes every message, and this host serves named operations");
        foreach (var message in operation.Messages)
        {
            if (message.MessageType is { } type) throw Refuse($"message contract {type.Name}: use parameters, or one [DataContract]");
            if (message.Body.WrapperName is null) throw Refuse("an unwrapped or untyped message (Message)");
        }
        if (Attribute<DataContractFormatAttribute>(method)?.Style == OperationFormatStyle.Rpc) throw Refuse("style rpc; document/literal is served");
        var xml = Attribute<XmlSerializerFormatAttribute>(method);
        if (xml is { Style: OperationFormatStyle.Rpc }) throw Refuse("style rpc; document/literal is served");
        if (xml is { Use: OperationFormatUse.Encoded }) throw Refuse("use encoded; document/literal is served");

        var parameters = method.GetParameters();
        var inputs = Parts(input.Body, [.. parameters.Where(parameter => !parameter.IsOut)]);
        var outputs = output is null ? [] : Parts(output.Body, [.. parameters.Where(parameter => parameter.ParameterType.IsByRef)]);
        if (output?.Body.ReturnValue is { } result && result.Type != typeof(void)) outputs.Insert(0, new Part(result.Name, result.Namespace, result.Type, method.ReturnTypeCustomAttributes));
        foreach (var part in inputs.Concat(outputs))
        {
            if (typeof(Stream).IsAssignableFrom(part.Type)) throw Refuse($"{part.Name} is a Stream; use byte[]");
        }

        BodyCodec Codec(MessageBodyDescription body, List<Part> parts)
        {
            try
            {
                return xml is null ? new DataContractBody(body.WrapperName, body.WrapperNamespace, parts, operation.KnownTypes) : new XmlSerializerBody(body.WrapperName, body.WrapperNamespace, parts, importer);
            }
            catch (Exception error) when (error is InvalidOperationException or NotSupportedException or System.Runtime.Serialization.InvalidDataContractException) { throw Refuse(error.InnerException?.Message ?? error.Message); }
        }
        return new Operation(operation.Name, input.Action, output?.Action, Codec(input.Body, inputs), output is null ? null : Codec(output.Body, outputs),
            [.. operation.Faults.Select(fault => Declared(fault, method))], [.. operation.KnownTypes], method);
    }

    /// <summary>WCF numbers the parts of a body in the order of the parameters that they stand for.</summary>
    private static List<Part> Parts(MessageBodyDescription body, ParameterInfo[] parameters) =>
        [.. body.Parts.OrderBy(part => part.Index).Select((part, i) => new Part(part.Name, part.Namespace, part.Type, parameters[i]))];

    private static DeclaredFault Declared(FaultDescription fault, MethodInfo method)
    {
        var said = method.GetCustomAttributes<FaultContractAttribute>().FirstOrDefault(one => one.DetailType == fault.DetailType);
        return new DeclaredFault(fault.Name, fault.Action, fault.DetailType, said?.Name is { } name ? (name, said.Namespace ?? fault.Namespace) : null);
    }

    private static T? Attribute<T>(MethodInfo method) where T : Attribute => method.GetCustomAttribute<T>() ?? method.DeclaringType!.GetCustomAttribute<T>();
}
