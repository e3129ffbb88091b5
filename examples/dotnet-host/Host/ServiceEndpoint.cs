using System.Buffers;
using System.Globalization;
using System.ServiceModel.Channels;
using System.Xml;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;

namespace SoaBroker.Host;

/// <summary>The service's address: POST takes a SOAP request, GET ?wsdl tells the contract. Below it the controller, which takes HPC Pack's IHpcServiceHost.Exit.</summary>
public sealed class ServiceEndpoint(ServiceContract contract, Wsdl wsdl, InstancePool instances, HostLife life, HostSettings settings, Registration registration, Action<string> log)
{
    /// <summary>Calls that wait for their turn; the broker sends maxConcurrentCalls and a few ahead, so more than this is no broker of ours.</summary>
    private const int MaxWaiting = 1000;
    private const string ExitAction = "http://hpc.microsoft.com/hpcservicehost/exit";
    private const string Hpc = "http://www.microsoft.com/hpc";
    private static readonly BufferManager Buffers = BufferManager.CreateBufferManager(maxBufferPoolSize: 16_777_216, maxBufferSize: 1_048_576);

    private readonly SemaphoreSlim slots = new(registration.MaxConcurrentCalls > 0 ? registration.MaxConcurrentCalls : settings.Cores);
    private int waiting;

    public async Task HandleAsync(HttpContext http)
    {
        var (request, response) = (http.Request, http.Response);
        var isController = request.Path.Value == settings.ListenUrl.AbsolutePath.TrimEnd('/') + "/controller";
        if (!isController && request.Path.Value != settings.ListenUrl.AbsolutePath) { response.StatusCode = 404; return; }
        try
        {
            if (isController) { await ControlAsync(http); return; }
            if (HttpMethods.IsPost(request.Method)) await PostAsync(http);
            else if (!HttpMethods.IsGet(request.Method)) response.StatusCode = 405;
            else if (request.QueryString.Value is "?wsdl" or "?singleWsdl") await TextAsync(response, 200, "text/xml; charset=utf-8", wsdl.Write(registration.Name, $"http://{request.Host}{request.Path}"));
            else await TextAsync(response, 200, "text/plain; charset=utf-8", $"Service {registration.Name}, contract {contract.Name}, task {settings.TaskId}. Its WSDL: http://{request.Host}{request.Path}?wsdl\n");
        }
        catch (NotSoapException error) { await TextAsync(response, error.Status, "text/plain; charset=utf-8", error.Message + "\n"); }
        catch (OperationCanceledException) when (http.RequestAborted.IsCancellationRequested) { } // nobody is there to be told
        catch (Exception error) when (!response.HasStarted)
        {
            log($"{request.Method} {request.Path} failed: {error}");
            await TextAsync(response, 500, "text/plain; charset=utf-8", "internal error; the log of the node says more\n");
        }
    }

    /// <summary>Exit is one-way: it is answered, and then the host ends as it does on SIGTERM.</summary>
    private async Task ControlAsync(HttpContext http)
    {
        var (request, response) = (http.Request, http.Response);
        if (!HttpMethods.IsPost(request.Method)) { response.StatusCode = 405; return; }
        var soap = SoapFormat.Of(request.ContentType).Read(await BodyAsync(request), request.ContentType!, request.Headers["SOAPAction"]);
        if (soap.Action != ExitAction) { await ReplyAsync(response, soap, soap.Reply(Faults.ActionNotSupported(soap.Action)), http.RequestAborted); return; }
        response.StatusCode = 202;
        response.OnCompleted(() => { _ = life.EndGracefullyAsync(); return Task.CompletedTask; });
    }

    private async Task PostAsync(HttpContext http)
    {
        var (request, response) = (http.Request, http.Response);
        var soap = SoapFormat.Of(request.ContentType).Read(await BodyAsync(request), request.ContentType!, request.Headers["SOAPAction"]);
        using (soap.Message)
        {
            if (await CallAsync(soap, http.RequestAborted) is not { } reply) { response.StatusCode = 202; return; }
            await ReplyAsync(response, soap, reply, http.RequestAborted);
        }
    }

    private async Task ReplyAsync(HttpResponse response, SoapRequest soap, SoapReply reply, CancellationToken gone)
    {
        using var message = reply.Message;
        if (life.IsEnding) message.Headers.Add(MessageHeader.CreateHeader("preemption", Hpc, life.Running));
        string contentType;
        ArraySegment<byte> bytes;
        try { (contentType, bytes) = soap.Format.Write(message, Buffers); }
        catch (Exception error) when (!reply.IsFault)
        {
            log($"the result of {soap.Action} cannot be written: {error}");
            await ReplyAsync(response, soap, soap.Reply(Faults.Internal(error, registration.IncludeExceptionDetailInFaults)), gone);
            return;
        }
        try
        {
            response.StatusCode = reply.IsFault ? 500 : 200; // also with SOAP 1.2: WCF's client reads no fault of any other status
            response.ContentType = contentType;
            response.ContentLength = bytes.Count;
            await response.Body.WriteAsync(bytes, gone);
        }
        finally { Buffers.ReturnBuffer(bytes.Array!); }
    }

    /// <summary>null: nothing is to be answered.</summary>
    private async Task<SoapReply?> CallAsync(SoapRequest soap, CancellationToken gone)
    {
        if (soap.NotUnderstood() is { } header) return soap.Reply(Faults.MustUnderstand(header));
        var body = soap.Message.IsEmpty ? null : soap.Message.GetReaderAtBodyContents();
        if (Find(soap.Action, body) is not { } operation) return soap.Reply(Faults.ActionNotSupported(soap.Action));
        object?[] inputs;
        try { inputs = body is null ? throw new BodyException($"the body is empty, expected: {operation.Request.Wrapper}") : operation.Request.Read(body); }
        catch (Exception error) when (error is BodyException or XmlException) { return soap.Reply(Faults.BadBody(error.Message)); }

        if (Interlocked.Increment(ref waiting) > MaxWaiting) { Interlocked.Decrement(ref waiting); return soap.Reply(Faults.Busy(MaxWaiting, settings.TaskId)); }
        try { await slots.WaitAsync(gone); }
        finally { Interlocked.Decrement(ref waiting); }
        try
        {
            if (!life.TryBegin()) return soap.Reply(Faults.Preempted(life.Running));
            try { return await InvokeAsync(soap, operation, inputs, gone); }
            finally { life.End(); }
        }
        finally { slots.Release(); }
    }

    private async Task<SoapReply?> InvokeAsync(SoapRequest soap, Operation operation, object?[] inputs, CancellationToken gone)
    {
        using var cancellation = CancellationTokenSource.CreateLinkedTokenSource(gone, life.Cut);
        object? instance = null;
        try
        {
            instance = instances.Take();
            ServiceContext.Enter(new ServiceCall(soap.Action, soap.MessageId, soap.Message.Headers, cancellation.Token));
            // On a thread of the pool: a service may block, and a web server's request loop should not.
            var outputs = await Task.Run(() => operation.InvokeAsync(instance, inputs), CancellationToken.None);
            return operation.Reply is null ? null : soap.Reply(operation.ReplyAction!, operation.Reply, outputs);
        }
        catch (OperationCanceledException) when (life.Cut.IsCancellationRequested) { return operation.Reply is null ? null : soap.Reply(Faults.Preempted(life.Running - 1)); }
        catch (Exception error)
        {
            if (error is not System.ServiceModel.FaultException) log($"{operation.Name} threw: {error}");
            return operation.Reply is null ? null : soap.Reply(Faults.Of(error, operation, registration.IncludeExceptionDetailInFaults, settings.TaskId));
        }
        finally
        {
            ServiceContext.Enter(null);
            if (instance is not null) instances.GiveBack(instance);
        }
    }

    /// <summary>By the action; without one (SOAP 1.1 allows it) by the body's element.</summary>
    private Operation? Find(string action, XmlReader? body) => action != ""
        ? contract.ByAction.GetValueOrDefault(action) : body is null ? null : contract.ByElement[(body.LocalName, body.NamespaceURI)].FirstOrDefault();

    private async Task<ReadOnlyMemory<byte>> BodyAsync(HttpRequest request)
    {
        NotSoapException TooLarge(long size) => new(413, $"the request has {(request.ContentLength is null ? "more than " : "")}{size.ToString(CultureInfo.InvariantCulture)} bytes, the limit is {settings.MaxMessageSize} (maxMessageSize)");
        if (request.ContentLength > settings.MaxMessageSize) throw TooLarge(request.ContentLength.Value);
        request.HttpContext.Features.GetRequiredFeature<IHttpMaxRequestBodySizeFeature>().MaxRequestBodySize = null; // the limit is ours, with a text of its own
        var all = new ArrayBufferWriter<byte>((int)(request.ContentLength ?? 4096) + 1);
        for (var reader = request.BodyReader; ;)
        {
            var read = await reader.ReadAsync(request.HttpContext.RequestAborted);
            foreach (var piece in read.Buffer)
            {
                if (all.WrittenCount + piece.Length > settings.MaxMessageSize) throw TooLarge(settings.MaxMessageSize);
                all.Write(piece.Span);
            }
            reader.AdvanceTo(read.Buffer.End);
            if (read.IsCompleted) return all.WrittenMemory;
        }
    }

    private static Task TextAsync(HttpResponse response, int status, string contentType, string text)
    {
        response.StatusCode = status;
        response.ContentType = contentType;
        return response.WriteAsync(text);
    }
}
