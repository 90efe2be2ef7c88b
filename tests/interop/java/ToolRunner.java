import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM, because starting a JVM for each takes longer than most of them.
 * Reads a command a line, {"main": class, "arguments": [...], "stdin": text, "seconds": limit}, and writes a result a line,
 * {"exit": code, "out": text, "err": text}. The first exit code that a tool asks for counts; one that runs too long has the code -1.
 */
public class ToolRunner {
    private static final int STILL_RUNNING = -1;

    private static final class ExitAsked extends Error {
        ExitAsked() {
            super("exit", null, false, false);
        }
    }

    public static void main(String[] unused) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream results = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            results.println(json.writeValueAsString(run(json, json.readTree(line))));
            results.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode run(ObjectMapper json, JsonNode command) throws Exception {
        String[] arguments = json.convertValue(command.get("arguments"), String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        InputStream stdin = new ByteArrayInputStream(command.get("stdin").asText().getBytes(StandardCharsets.UTF_8));
        AtomicInteger exit = new AtomicInteger(Integer.MIN_VALUE);
        Exit.Procedure note = (code, message) -> {
            exit.compareAndSet(Integer.MIN_VALUE, code);
            throw new ExitAsked();
        };
        Exit.setExitProcedure(note);
        Exit.setHaltProcedure(note);
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(stdin);
        Thread tool = new Thread(() -> call(command.get("main").asText(), arguments, exit));
        tool.setDaemon(true);
        tool.start();
        tool.join(command.get("seconds").asLong() * 1000);
        if (tool.isAlive()) {
            exit.set(STILL_RUNNING);
            tool.interrupt();
        }
        System.out.flush();
        System.err.flush();
        ObjectNode result = json.createObjectNode();
        result.put("exit", exit.get() == Integer.MIN_VALUE ? 0 : exit.get());
        result.put("out", out.toString(StandardCharsets.UTF_8));
        result.put("err", err.toString(StandardCharsets.UTF_8));
        return result;
    }

    private static void call(String main, String[] arguments, AtomicInteger exit) {
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException wrapped) {
            if (!(wrapped.getCause() instanceof ExitAsked)) {
                wrapped.getCause().printStackTrace();
                exit.compareAndSet(Integer.MIN_VALUE, 1);
            }
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            exit.compareAndSet(Integer.MIN_VALUE, 127);
        }
    }
}
