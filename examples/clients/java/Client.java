// Asks a server over HTTP with Java's own client, Java 17 or later. Usage: java Client.java [host:port]

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

public final class Client {
    private static final String HEADER_LENGTH = "Inference-Header-Content-Length";
    private static final int[] ROW = IntStream.range(0, 16).toArray();
    private static final int[] ONES = IntStream.range(0, 16).map(index -> 1).toArray();

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private final String base;

    private Client(String address) {
        base = "http://" + address;
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client(arguments.length > 0 ? arguments[0] : "localhost:8000");
        client.get("/v2/health/ready");
        System.out.println("ready: yes");
        System.out.println("inputs: " + client.get("/v2/models/simple"));
        System.out.println("sum: " + client.inferJson());
        System.out.println("difference: " + client.inferBinary());
        System.out.println("words:" + client.words("one word after another"));
        try {
            client.post("/v2/models/nothing/infer", "{\"inputs\": []}".getBytes(StandardCharsets.UTF_8), 0);
        } catch (IOException refused) {
            System.out.println("refused: " + refused.getMessage());
        }
    }

    /** The answer as it comes; a program of some size reads it with a JSON library, which Java itself has not. */
    private String inferJson() throws Exception {
        String inputs = "{\"name\": \"INPUT%d\", \"shape\": [1, 16], \"datatype\": \"INT32\", \"data\": [%s]}";
        String request = "{\"inputs\": [" + inputs.formatted(0, joined(ROW)) + ", " + inputs.formatted(1, joined(ONES))
                + "], \"outputs\": [{\"name\": \"OUTPUT0\"}]}";
        byte[] answer = post("/v2/models/simple/infer", request.getBytes(StandardCharsets.UTF_8), 0).body();
        return new String(answer, StandardCharsets.UTF_8);
    }

    /** A JSON header, then the numbers as they lie in memory; the answer has the same form. */
    private String inferBinary() throws Exception {
        String inputs = "{\"name\": \"INPUT%d\", \"shape\": [1, 16], \"datatype\": \"INT32\","
                + " \"parameters\": {\"binary_data_size\": 64}}";
        byte[] header = ("{\"inputs\": [" + inputs.formatted(0) + ", " + inputs.formatted(1)
                + "], \"outputs\": [{\"name\": \"OUTPUT1\", \"parameters\": {\"binary_data\": true}}]}")
                .getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = ByteBuffer.allocate(header.length + 128).order(ByteOrder.LITTLE_ENDIAN).put(header);
        IntStream.of(ROW).forEach(body::putInt);
        IntStream.of(ONES).forEach(body::putInt);
        HttpResponse<byte[]> response = post("/v2/models/simple/infer", body.array(), header.length);
        int length = response.headers().firstValue(HEADER_LENGTH).map(Integer::parseInt).orElseThrow();
        ByteBuffer numbers = ByteBuffer.wrap(response.body()).order(ByteOrder.LITTLE_ENDIAN).position(length);
        return IntStream.range(0, 16).mapToObj(index -> String.valueOf(numbers.getInt())).collect(Collectors.joining(" "));
    }

    /** Server-sent events: a line `data: {...}` for each response, as it comes. */
    private String words(String text) throws Exception {
        String request = "{\"TEXT\": \"" + text + "\"}";
        HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.ofString(request);
        Pattern word = Pattern.compile("\"WORD\":\\s*\"([^\"]*)\"");
        StringBuilder found = new StringBuilder();
        HttpResponse<Stream<String>> response =
                http.send(to("/v2/models/words/generate_stream").POST(body).build(), BodyHandlers.ofLines());
        if (response.statusCode() != 200) {
            throw new IOException(response.body().collect(Collectors.joining("\n")));
        }
        response.body()
                .filter(line -> line.startsWith("data: "))
                .map(word::matcher)
                .filter(Matcher::find)
                .forEach(matcher -> found.append(" | ").append(matcher.group(1)));
        return found.toString();
    }

    private String get(String path) throws Exception {
        return new String(answered(to(path).GET().build()).body(), StandardCharsets.UTF_8);
    }

    private HttpResponse<byte[]> post(String path, byte[] body, int headerLength) throws Exception {
        HttpRequest.Builder request = to(path).POST(HttpRequest.BodyPublishers.ofByteArray(body));
        if (headerLength > 0) {
            request.header(HEADER_LENGTH, String.valueOf(headerLength));
        }
        return answered(request.build());
    }

    private HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(30));
    }

    /** The server says in the body why it refuses. */
    private HttpResponse<byte[]> answered(HttpRequest request) throws Exception {
        HttpResponse<byte[]> response = http.send(request, BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) {
            throw new IOException(new String(response.body(), StandardCharsets.UTF_8));
        }
        return response;
    }

    private static String joined(int[] numbers) {
        return IntStream.of(numbers).mapToObj(String::valueOf).collect(Collectors.joining(", "));
    }
}
