import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactions by the Java client: committed, aborted, fenced, with offsets. Prints what is to be seen afterwards.
 *
 * Arguments: bootstrap servers, topic (two partitions).
 */
public class Transactions {
    private final String bootstrap;
    private final String topic;

    private Transactions(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        new Transactions(arguments[0], arguments[1]).run();
    }

    private void run() throws Exception {
        try (KafkaProducer<String, String> producer = producer();
                KafkaConsumer<String, String> consumer = consumer("read_committed")) {
            write(producer, "first");
            producer.commitTransaction();
            write(producer, "aborted");
            producer.flush();
            producer.abortTransaction();
            write(producer, "second");
            producer.sendOffsetsToTransaction(offset(2), consumer.groupMetadata());
            producer.commitTransaction();
            write(producer, "dropped");
            producer.sendOffsetsToTransaction(offset(9), consumer.groupMetadata());
            producer.abortTransaction();
        }
        fence();
        System.out.println("committed " + read("read_committed"));
        System.out.println("offset " + committedOffset());
    }

    private void fence() throws Exception {
        KafkaProducer<String, String> older = producer();
        write(older, "stolen");
        older.flush();
        try (KafkaProducer<String, String> newer = producer()) {
            try {
                older.commitTransaction();
                System.out.println("fenced nobody");
            } catch (KafkaException expected) {
                System.out.println("fenced " + expected.getClass().getSimpleName());
            }
            older.close(Duration.ZERO);
            write(newer, "third");
            newer.commitTransaction();
        }
    }

    private KafkaProducer<String, String> producer() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", topic);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private void write(KafkaProducer<String, String> producer, String value) {
        producer.beginTransaction();
        for (int partition = 0; partition < 2; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
    }

    private Map<TopicPartition, OffsetAndMetadata> offset(long offset) {
        return Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(offset));
    }

    private KafkaConsumer<String, String> consumer(String isolation) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", topic);
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", isolation);
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private List<String> read(String isolation) {
        List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    found.add(record.value());
                }
            }
        }
        found.sort(null);
        return found;
    }

    private long committedOffset() {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = consumer("read_committed")) {
            return consumer.committed(Set.of(partition)).get(partition).offset();
        }
    }
}
