-- Layout of a MediaWiki table dump; a generated toy world
--
-- Host: none    Database: toywiki
-- ------------------------------------------------------

/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET TIME_ZONE='+00:00' */;

--
-- Table structure for table `{table}`
--

DROP TABLE IF EXISTS `{table}`;
CREATE TABLE `{table}` (
{columns}
) ENGINE=InnoDB DEFAULT CHARSET=binary;

--
-- Dumping data for table `{table}`
--

/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;
