import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;

import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/** Reads keys in hexadecimal, one a line, and says what Kafka's own producer makes of each: its hash and partition. */
public class PartitionOfKeys {
    public static void main(String[] arguments) throws Exception {
        int partitions = Integer.parseInt(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] key = HexFormat.of().parseHex(line);
            answers.append(Utils.murmur2(key)).append(' ');
            answers.append(BuiltInPartitioner.partitionForKey(key, partitions)).append('\n');
        }
        System.out.print(answers);
    }
}
