import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler;

/**
 * HDFS and YARN with two node managers in one process, on free ports, until standard input ends.
 *
 * Argument: the directory for the files of HDFS and for the configuration of clients. Prints the address of WebHDFS.
 */
public class MiniHadoop {
    private static final int NODE_MANAGERS = 2;
    private static final int CONNECT_TIMEOUT_MS = 60_000;
    private static final String[] FOR_CLIENTS = {
        CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY,
        YarnConfiguration.RM_ADDRESS,
        YarnConfiguration.RM_SCHEDULER_ADDRESS
    };

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        YarnConfiguration settings = new YarnConfiguration();
        settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, directory.resolve("hdfs").toString());
        // The default scheduler reads its queues from a file that the jars do not contain.
        settings.setClass(YarnConfiguration.RM_SCHEDULER, FifoScheduler.class, Object.class);
        settings.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
        // A disk of more than 90 % would count as broken.
        settings.setBoolean(YarnConfiguration.NM_DISK_HEALTH_CHECK_ENABLE, false);
        MiniDFSCluster files = new MiniDFSCluster.Builder(settings).numDataNodes(1).build();
        MiniYARNCluster nodes = new MiniYARNCluster("nodes", NODE_MANAGERS, 1, 1);
        nodes.init(new YarnConfiguration(files.getConfiguration(0)));
        nodes.start();
        if (!nodes.waitForNodeManagersToConnect(CONNECT_TIMEOUT_MS)) {
            throw new IllegalStateException("the node managers did not connect");
        }
        writeConfiguration(nodes.getConfig(), directory);
        System.out.println("ready " + files.getHttpUri(0));
        while (System.in.read() >= 0) {}
        System.exit(0);
    }

    /** Only what clients of a real cluster have, too: the rest names classes that Spark does not have. */
    private static void writeConfiguration(Configuration running, Path directory) throws Exception {
        Configuration written = new Configuration(false);
        for (String name : FOR_CLIENTS) {
            written.set(name, running.get(name));
        }
        for (String name : new String[] {"core-site.xml", "yarn-site.xml"}) {
            try (OutputStream file = Files.newOutputStream(directory.resolve(name))) {
                written.writeXml(file);
            }
        }
    }
}
